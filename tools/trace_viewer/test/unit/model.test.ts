// SPDX-License-Identifier: Apache-2.0
// Index, pyramid, lanes, life-line, waterfall, statistics, comparison.
import { describe, expect, test } from 'vitest';
import { nativeText } from '../synthetic.mjs';
import { compare, stageNames } from '../../src/model/compare';
import { componentOf, lanesOfMessage, orderLanes, shortPath, usedLanes } from '../../src/model/lanes';
import { effectsOf, lifeline, spansOfMessage } from '../../src/model/lifeline';
import { spanAt, walkRow } from '../../src/model/lod';
import { workIn } from '../../src/model/range';
import { kMaxSlots } from '../../src/model/slots';
import { groupAndSort, lowerBound, sortRange } from '../../src/model/sort';
import { cdf, histogram, mean, percentile, sorted } from '../../src/model/stats';
import { formatDuration, formatNs, formatPs, formatTick, parseTime, ticks } from '../../src/model/time';
import { stagesOf, stepsOf, union } from '../../src/model/waterfall';
import { fixture, kEnd, kHeader, lines, open, point, spanById } from './open';

describe('work in a range', () => {
  test('is cut off at its ends, and counts time at work once', async () => {
    const t = await open(
      lines(
        kHeader,
        { k: 'point', id: 0, name: 'cpu.post', cat: 'cpu', kind: 'span', args: [] },
        { k: 'point', id: 1, name: 'hca.rx', cat: 'hca', kind: 'span', args: [] },
        // Two overlap by 50; one reaches over the end, one lies outside, one was under way before.
        {
          k: 'span',
          n: 5,
          t0: 0,
          t1: 990,
          id0: 1,
          ts: [0, 250, 50, 440, 160],
          dur: [210, 100, 100, 100, 90],
          lane: [1, 0, 0, 0, 0],
          point: [1, 0, 0, 0, 0],
        },
      ),
    );
    const work = workIn(t, 200, 800).map((w) => [t.points[w.point].name, w.count, w.busy, w.sum, w.longest, t.spans.id[w.first]]);
    expect(work).toEqual([
      ['cpu.post', 3, 210, 260, 100, 2],
      ['hca.rx', 1, 10, 10, 210, 1],
    ]);
    expect(workIn(t, 500, 700)).toEqual([]);
  });
});

describe('sorting', () => {
  test('runs that are out of order, stable', () => {
    const key = Float64Array.from([5, 1, 2, 2, 9, 0, 3, 3, 8, 7]);
    const order = Uint32Array.from(key.keys());
    sortRange(order, 0, order.length, key);
    expect(Array.from(order)).toEqual([5, 1, 2, 3, 6, 7, 0, 9, 8, 4]);
  });
  test('groups', () => {
    const g = groupAndSort([1, 0, 1, 1], 4, 3, Float64Array.from([9, 5, 3, 3]));
    expect(Array.from(g.order)).toEqual([1, 2, 3, 0]);
    expect(Array.from(g.offset)).toEqual([0, 1, 4, 4]);
    expect(lowerBound([1, 3, 3, 7], 3, 0, 4)).toBe(1);
    expect(lowerBound([1, 3, 3, 7], 8, 0, 4)).toBe(4);
  });
});

describe('rows and pyramid', () => {
  test('spans of a row are sorted and do not overlap; every span is in a row of its lane', async () => {
    const t = await open(nativeText(300));
    let seen = 0;
    const used = new Map<number, number>();
    for (let r = 0; r < t.rows.n; ++r) {
      used.set(t.rows.lane[r], (used.get(t.rows.lane[r]) ?? 0) + 1);
      for (let i = t.rows.offset[r]; i < t.rows.offset[r + 1]; ++i, ++seen) {
        expect(t.spans.lane[i]).toBe(t.rows.lane[r]);
        if (i > t.rows.offset[r]) expect(t.spans.start[i]).toBeGreaterThanOrEqual(t.spans.start[i - 1] + t.spans.dur[i - 1]);
      }
    }
    expect(seen).toBe(t.spans.n);
    expect(Math.max(...used.values())).toBeLessThanOrEqual(kMaxSlots);
  });

  test('a lane with more spans at once than slots says so and loses none', async () => {
    const n = kMaxSlots + 3;
    const many = { k: 'span', n, t0: 0, t1: 100, id0: 1, dur: Array(n).fill(100) };
    const t = await open(lines(kHeader, point(0, 'a.b'), many, kEnd(n)));
    expect(t.rows.n).toBe(kMaxSlots);
    expect(t.spans.n).toBe(n);
    expect(t.diagnostics[0]).toMatchObject({ severity: 'note' });
  });

  test('the walk yields single spans when they are wide, blocks when not, and covers all of them', async () => {
    const t = await open(nativeText(2000));
    for (let r = 0; r < t.rows.n; ++r) {
      const single: number[] = [];
      walkRow(t.spans, t.rows, t.lod, r, -Infinity, Infinity, 0, (_a, _b, _p, span) => single.push(span));
      const from = t.rows.offset[r];
      expect(single).toEqual(Array.from({ length: t.rows.offset[r + 1] - from }, (_, i) => from + i));
      const finest = (t.t1 - t.t0) / 200;
      let calls = 0;
      let last = -Infinity;
      let covered = 0;
      walkRow(t.spans, t.rows, t.lod, r, t.t0, t.t1, finest, (a, b, _p, span, busy) => {
        ++calls;
        expect(a).toBeGreaterThanOrEqual(last);
        last = a;
        expect(busy).toBeGreaterThan(0);
        expect(busy).toBeLessThanOrEqual(1);
        if (span < 0) expect(b - a).toBeLessThan(finest);
        covered += (b - a) * busy;
      });
      expect(calls).toBeLessThan(200 * 8 * 2);
      let total = 0;
      for (let i = from; i < t.rows.offset[r + 1]; ++i) total += t.spans.dur[i];
      expect(Math.abs(covered / total - 1)).toBeLessThan(1e-5);
    }
  });

  test('the window limits the walk', async () => {
    const t = await open(nativeText(2000));
    const middle = (t.t0 + t.t1) / 2;
    const found: number[] = [];
    for (let r = 0; r < t.rows.n; ++r)
      walkRow(t.spans, t.rows, t.lod, r, middle, middle + 3e6, 0, (_a, _b, _p, span) => found.push(span));
    const want: number[] = [];
    for (let i = 0; i < t.spans.n; ++i)
      if (t.spans.start[i] + t.spans.dur[i] >= middle && t.spans.start[i] <= middle + 3e6) want.push(i);
    expect(found).toEqual(want);
    expect(want.length).toBeGreaterThan(10);
  });

  test('what is under the pointer', async () => {
    const spans = { k: 'span', n: 3, t0: 100, t1: 400, id0: 1, ts: [0, 100, 150], dur: [50, 100, 50] };
    const t = await open(lines(kHeader, point(0, 'a.b'), spans, kEnd(3)));
    expect(spanAt(t.spans, t.rows, 0, 120, 0)).toBe(0);
    expect(spanAt(t.spans, t.rows, 0, 160, 5)).toBe(-1);
    expect(spanAt(t.spans, t.rows, 0, 160, 12)).toBe(0);
    expect(spanAt(t.spans, t.rows, 0, 345, 12)).toBe(2);
    expect(spanAt(t.spans, t.rows, 0, 5000, 12)).toBe(-1);
  });
});

describe('lanes', () => {
  test('run from the application to the wire and mirrored up again', async () => {
    const header = {
      ...kHeader,
      lanes: [
        'host0.hca.tx',
        'host0.cpu0',
        'host0.pcie.up',
        'kernel.irq0',
        'fabric.a_to_b',
        'host1.cpu0',
        'host1.hca.rx',
        'host1.pcie.up',
        'host1.new',
        'host0.app.qp1',
      ].map((path, id) => ({
        id,
        host: path.startsWith('fabric') ? -1 : path.startsWith('host1') ? 1 : 0,
        path,
        kind: 'pipelined',
      })),
    };
    const n = header.lanes.length;
    const t = await open(
      lines(header, point(0, 'a.b'), { k: 'span', n, t0: 0, t1: 1, id0: 1, lane: header.lanes.map((l) => l.id) }, kEnd(n)),
    );
    const used = usedLanes(t);
    const groups = orderLanes(t, (l) => used[l] === 1).map((g) => [
      g.name,
      g.lanes.map((l) => shortPath(t.lanes[l], t.header.hosts)),
    ]);
    expect(groups).toEqual([
      ['host0', ['app.qp1', 'cpu0', 'kernel.irq0', 'pcie.up', 'hca.tx']],
      ['fabric', ['a_to_b']],
      ['host1', ['hca.rx', 'new', 'pcie.up', 'cpu0']],
    ]);
    expect(componentOf(t.lanes[1], t.header.hosts)).toBe('cpu');
  });
});

describe('life-line', () => {
  const spans = {
    k: 'span',
    n: 5,
    t0: 0,
    t1: 500,
    id0: 1,
    ts: [0, 100, 50, 150, -290],
    dur: [90, 40, 40, 10, 400],
    wait: [0, 10, 0, 50, 0],
    lane: [0, 0, 2, 1, 1],
    msg: [1, 1, 1, 1, 0],
    up: [0, 1, 0, 3, 0],
  };
  test('recorded causes first, else the span that ended last before', async () => {
    const t = await open(lines(kHeader, point(0, 'a.b'), spans, kEnd(5)));
    const line = lifeline(t, 1);
    expect(spansOfMessage(t, 1).map((i) => t.spans.id[i])).toEqual([1, 2, 3, 4]);
    const arrows = line.arrows.map((a) => [t.spans.id[a.from], t.spans.id[a.to], a.implied]);
    // 3 has no cause: 2 ended at 140, before it begins at 150. 4 names 1, though 3 ended later.
    expect(arrows).toEqual([
      [1, 2, false],
      [2, 3, true],
      [1, 4, false],
    ]);
    expect(effectsOf(t, spanById(t, 1)).map((i) => t.spans.id[i])).toEqual([2, 4]);
    expect([...lanesOfMessage(t, 1)].sort()).toEqual([0, 1, 2]);
    expect(lifeline(t, 99).spans).toEqual([]);
  });

  test('every message of a trace of the simulator hangs together', async () => {
    const t = await open(fixture('lost_packet_waits_for_the_ack_timeout.jsonl.gz'));
    for (let r = 0; r < t.messages.n; ++r) {
      const line = lifeline(t, t.messages.id[r]);
      expect(line.arrows.length).toBeGreaterThanOrEqual(line.spans.length - 3);
    }
  });
});

describe('waterfall', () => {
  test('sums to the latency exactly, for every message', async () => {
    const t = await open(nativeText(500));
    for (let r = 0; r < t.messages.n; ++r) {
      const s = stagesOf(t, r)!;
      expect(s.sum).toBe(t.messages.total[r]);
      expect(s.bars[s.bars.length - 1].from + s.bars[s.bars.length - 1].ps).toBe(s.total);
      expect(s.bars.some((b) => b.stage === '(unaccounted)')).toBe(false);
    }
  });
  test('a difference is shown, not hidden', async () => {
    const msg = { k: 'msg', n: 1, t0: 0, t1: 100, id: [1], total: [100], post: [30], wire: [60] };
    const t = await open(lines(kHeader, msg, kEnd(0, { messages: 1 })));
    const s = stagesOf(t, 0)!;
    expect(s.bars).toEqual([
      { stage: 'post', from: 0, ps: 30 },
      { stage: 'wire', from: 30, ps: 60 },
      { stage: '(unaccounted)', from: 90, ps: 10 },
    ]);
    expect(s.sum).toBe(100);
    expect(stagesOf(t, 0, true)!.bars).toHaveLength(4);
  });
  test('steps: wait and service by lane and point', async () => {
    const spans = {
      k: 'span',
      n: 3,
      t0: 100,
      t1: 400,
      id0: 1,
      ts: [0, 10, 100],
      dur: [50, 60, 20],
      wait: [40, 50, 0],
      lane: [0, 0, 1],
      msg: [1, 1, 1],
    };
    const t = await open(lines(kHeader, point(0, 'a.b'), spans, kEnd(3)));
    const steps = stepsOf(t, lifeline(t, 1));
    expect(steps).toHaveLength(2);
    expect(steps[0]).toMatchObject({ lane: 0, from: 60, to: 170, service: 70, wait: 40 });
    expect(
      union([
        [0, 10],
        [5, 20],
        [30, 31],
      ]),
    ).toBe(21);
  });
});

describe('statistics', () => {
  test('percentiles by nearest rank, histogram, distribution', () => {
    const v = sorted([4, NaN, 1, 3, 2]);
    expect([percentile(v, 0), percentile(v, 0.5), percentile(v, 0.51), percentile(v, 1)]).toEqual([1, 2, 3, 4]);
    expect(percentile(sorted([]), 0.5)).toBeNaN();
    expect(mean(v)).toBe(2.5);
    const h = histogram(v, 3, false);
    expect(Array.from(h.counts)).toEqual([1, 1, 2]);
    expect(Array.from(h.edges)).toEqual([1, 2, 3, 4]);
    expect(Array.from(histogram(sorted([1, 10, 100]), 2, true).edges)).toEqual([1, 10, 100]);
    expect(histogram(sorted([5, 5]), 4, false).counts.reduce((x, y) => x + y)).toBe(2);
    expect(cdf(v, 10)).toEqual({ x: [1, 2, 3, 4], share: [0.25, 0.5, 0.75, 1] });
    expect(cdf(sorted(Array.from({ length: 1001 }, (_, i) => i)), 100).share.at(-1)).toBe(1);
  });
});

describe('two traces', () => {
  test('messages align by id, stages by name', async () => {
    const msg = (total: number[], more = {}) => ({
      k: 'msg',
      n: 2,
      t0: 0,
      t1: 9,
      id: [1, 2],
      t: [0, 50],
      total,
      post: total,
      op: [2, 2],
      ...more,
    });
    const a = await open(lines(kHeader, msg([10, 20]), kEnd(0, { messages: 2 })));
    const b = await open(
      lines(
        { ...kHeader, stages: ['post', 'msix', 'wire', 'poll'] },
        msg([13, 20], { id: [1, 3], msix: [1, 0] }),
        kEnd(0, { messages: 2 }),
      ),
    );
    const c = compare(a, b);
    expect(c.pairs.map((p) => [p.id, p.delta])).toEqual([[1, 3]]);
    expect([c.onlyA, c.onlyB, c.unlike]).toEqual([1, 1, 0]);
    expect(c.stages.map((s) => s.stage)).toEqual(['post', 'msix', 'wire', 'poll']);
    expect(c.stages[0]).toEqual({ stage: 'post', a: 10, b: 13 });
    expect(c.stages[1].a).toBeNaN();
    expect(stageNames(['a', 'c'], ['x', 'a', 'b', 'c'])).toEqual(['x', 'a', 'b', 'c']);
  });
});

describe('times as text', () => {
  test('durations keep every picosecond', () => {
    expect(formatDuration(2_101_500)).toBe('2.1015 µs');
    expect(formatDuration(1)).toBe('1 ps');
    expect(formatDuration(0)).toBe('0 ns');
    expect(formatDuration(65_500)).toBe('65.5 ns');
    expect(formatDuration(-1_301_755_574)).toBe('−1.301755574 ms');
    expect(formatDuration(NaN)).toBe('–');
    expect(formatNs(1_301_755_574)).toBe('1 301 755.574'.replace(/ /g, formatPs(1000)[1]));
    expect(formatTick(1_302_000_000, 500_000)).toBe('1.3020 ms');
  });
  test('and back', () => {
    expect(parseTime('12.5us')).toBe(12_500_000);
    expect(parseTime('3 µs')).toBe(3_000_000);
    expect(parseTime('100')).toBe(100);
    expect(parseTime('x')).toBeNaN();
  });
  test('ticks', () => {
    expect(ticks(0, 1000, 5)).toEqual({ step: 200, at: [0, 200, 400, 600, 800, 1000] });
    expect(ticks(5, 5, 5).at.length).toBeLessThan(3);
  });
});
