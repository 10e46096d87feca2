// SPDX-License-Identifier: Apache-2.0
// Window arithmetic, layout, drawing as SVG, links.
import { describe, expect, test } from 'vitest';
import { nativeText } from '../synthetic.mjs';
import { orderLanes, usedLanes } from '../../src/model/lanes';
import { lifeline } from '../../src/model/lifeline';
import { formatLink, parseLink } from '../../src/ui/link_text';
import { kDark, kLight, pointColors } from '../../src/view/colors';
import { clip, drawTimeline } from '../../src/view/draw';
import { rangeOf, valueAt } from '../../src/view/draw_values';
import { layOut, rowOfSpan, stripAt } from '../../src/view/layout';
import { formatValue } from '../../src/view/draw_frame';
import { SvgPainter } from '../../src/view/painter';
import { Scale, around, clampWindow, zoom } from '../../src/view/viewport';
import { kHeader, lines, open } from './open';

describe('window', () => {
  test('zoom keeps the time under the pointer', () => {
    const w = zoom({ from: 1000, to: 2000 }, 0.5, 1250);
    expect(w).toEqual({ from: 1125, to: 1625 });
    const s = new Scale(w, 100, 500);
    expect(s.x(1250)).toBe(225);
    expect(s.t(s.x(1333))).toBeCloseTo(1333, 9);
  });
  test('stays within the trace and never gets too short', () => {
    const w = clampWindow({ from: -1e9, to: -0.9e9 }, 0, 1e6);
    expect(w.from).toBe(-50_000);
    expect(clampWindow({ from: 5, to: 5 }, 0, 1e6).to - 5).toBeGreaterThan(0);
    expect(clampWindow({ from: -1e12, to: 1e12 }, 0, 1e6)).toEqual({ from: -50_000, to: 1_050_000 });
    const deep = zoom({ from: 0, to: 100 }, 0.001, 50);
    expect(deep.to - deep.from).toBe(100);
    expect(around(100, 1100)).toEqual({ from: 20, to: 1180 });
  });
});

describe('picture', () => {
  test('layout and drawing of a message', async () => {
    const t = await open(nativeText(50));
    const used = usedLanes(t);
    const layout = layOut(
      t,
      orderLanes(t, (l) => used[l] === 1),
    );
    expect(layout.strips.map((s) => s.kind)).toContain('counter');
    expect(layout.strips.map((s) => s.kind)).toContain('state');
    for (let k = 1; k < layout.strips.length; ++k)
      expect(layout.strips[k].y).toBeGreaterThanOrEqual(layout.strips[k - 1].y + layout.strips[k - 1].h);
    const span = t.byId[100];
    const y = layout.rowY[rowOfSpan(t, span)];
    expect(stripAt(layout, y)).toMatchObject({ kind: 'spans', lane: t.spans.lane[span] });
    const draw = (palette: typeof kLight, from: number, to: number, msg: number) => {
      const p = new SvgPainter(1000, 600);
      drawTimeline(p, {
        trace: t,
        layout,
        scale: new Scale({ from, to }, 196, 804),
        height: 600,
        scrollY: 0,
        palette,
        colors: pointColors(t.points, palette),
        matches: null,
        matchingInstants: null,
        line: msg > 0 ? lifeline(t, msg) : null,
        selected: { record: 'span', index: span },
        hover: -1,
        problems: Float64Array.from([from + 1]),
        cursor: NaN,
        measure: null,
        title: 'x < y',
      });
      return p.document('a & b');
    };
    const r = t.messageRow[10];
    const svg = draw(kLight, t.messages.t[r], t.messages.t[r] + t.messages.total[r], 10);
    expect(svg).toContain('<title>a &amp; b</title>');
    expect(svg).toContain('x &lt; y');
    expect(svg.match(/<g /g)!.length).toBe(svg.match(/<\/g>/g)!.length);
    expect(svg).toContain('stroke-width="1.2"');
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
    expect(draw(kDark, t.t0, t.t1, 0)).toContain(kDark.background);
    expect(draw(kDark, t.t0, t.t1, 0)).not.toMatch(/NaN|Infinity|undefined/);
  });
  test('many counters: the liveliest are shown, the others on demand; compact lanes have one row', async () => {
    const lanes = Array.from({ length: 12 }, (_, id) => ({ id, host: 0, path: `host0.hca.qp${id}`, kind: 'counter' }));
    lanes.push({ id: 12, host: 0, path: 'host0.hca.tx', kind: 'pipelined' });
    const values = lanes.slice(0, 12).flatMap((l) => Array.from({ length: l.id === 0 ? 1 : l.id + 1 }, (_, k) => [l.id, k % 4]));
    const t = await open(
      lines(
        { ...kHeader, lanes },
        { k: 'point', id: 0, name: 'hca.sq_depth', cat: 'hca', kind: 'counter', args: ['wqes'] },
        { k: 'counter', n: values.length, t0: 5, t1: 5, lane: values.map((v) => v[0]), v: values.map((v) => v[1]) },
        { k: 'point', id: 1, name: 'hca.tx', cat: 'hca', kind: 'span', args: [] },
        { k: 'span', n: 3, t0: 0, t1: 90, id0: 1, dur: [50, 50, 50], lane: [12, 12, 12], point: [1, 1, 1] },
      ),
    );
    const groups = orderLanes(t, () => true);
    const shown = layOut(t, groups).strips;
    const counters = (strips: typeof shown) => strips.flatMap((s) => (s.kind === 'counter' ? [s.label] : []));
    expect(counters(shown)).toEqual(['qp9', 'qp10', 'qp11']);
    const more = shown.find((s) => s.kind === 'more')!;
    expect(more).toMatchObject({ name: '9 more counters', key: '0/hca/more' });
    expect(counters(layOut(t, groups, { toggled: new Set(['0/hca/more']) }).strips)).toHaveLength(12);
    const spans = shown.find((s) => s.kind === 'spans')!;
    expect(spans).toMatchObject({ rows: 3, h: 27, step: 9 });
    const compact = layOut(t, groups, { compact: true });
    expect(compact.strips.map((s) => s.kind)).toEqual(['group', 'spans']);
    expect(compact.strips[1]).toMatchObject({ rows: 3, h: 12, step: 0, label: 'hca.tx' });
    const folded = layOut(t, groups, { toggled: new Set(['0/hca']) });
    expect(folded.strips.map((s) => s.kind)).toEqual(['group', 'component']);
    expect([...folded.rowY]).toEqual(Array(3).fill(folded.strips[1].y + folded.strips[1].h / 2));
  });
  test('values of counters are short', () => {
    expect([0, 5, 1234, 12345, 1.5e6, 2_000_000_123, -40_000, 0.125].map(formatValue)).toEqual([
      '0',
      '5',
      '1234',
      '12.35k',
      '1.5M',
      '2G',
      '-40k',
      '0.125',
    ]);
  });
  test('no peak of a counter is lost', async () => {
    const t = await open(nativeText(400));
    const s = t.counters.series[0];
    const slow = Array.from(t.counters.v.subarray(s.from + 3, s.to - 5));
    expect(rangeOf(t.counters, s.from + 3, s.to - 5)).toEqual([Math.min(...slow), Math.max(...slow)]);
    expect(valueAt(t.counters, s, t.counters.t[s.from + 7])).toBe(t.counters.v[s.from + 7]);
    expect(valueAt(t.counters, s, t.counters.t[s.from] - 1)).toBeNaN();
  });
  test('text is shortened', () => {
    expect(clip('dma_read #12', 200)).toBe('dma_read #12');
    expect(clip('dma_read #12', 40)).toBe('dma_re…');
    expect(clip('dma_read #12', 8)).toBe('');
  });
});

describe('links', () => {
  test('there and back', () => {
    const link = {
      t: 1_301_587_454,
      w: 2_437_740,
      msg: 258,
      q: 'qpn:256 lane:hca',
      tab: 'latency' as const,
      lanes: 'msg' as const,
    };
    expect(parseLink(formatLink(link))).toEqual(link);
    expect(parseLink('#t=12.5us&w=1us')).toEqual({ t: 12_500_000, w: 1_000_000 });
    expect(parseLink('#msg=-1&tab=nothing&w=0')).toEqual({});
    expect(parseLink('')).toEqual({});
  });
});
