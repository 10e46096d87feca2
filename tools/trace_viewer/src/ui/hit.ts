// SPDX-License-Identifier: Apache-2.0
// What lies under the pointer on a timeline, with the text of its tooltip.
import { formatArgument, valueName } from '../decode/values';
import { spanAt } from '../model/lod';
import { lowerBound } from '../model/sort';
import { formatDuration } from '../model/time';
import type { Point, Trace } from '../model/types';
import { stateName, valueAt } from '../view/draw_values';
import type { LaneStrip } from '../view/layout';
import { isFold, kAxisHeight, kLabelWidth, stripAt } from '../view/layout';
import { formatRate, isRate, kStep, rateAt } from '../view/rates';
import type { TimelineView } from './timeline';

export interface Hit {
  record: 'span' | 'instant' | 'packet' | 'value' | 'fold';
  index: number;
  text: string;
  /** Key of the fold. */
  fold?: string;
}

export function hitTest(view: TimelineView, x: number, y: number): Hit | null {
  const t = view.source?.trace;
  if (!t || y < kAxisHeight) return null;
  const at = y - kAxisHeight + view.scrollY;
  const strip = stripAt(view.layout, at);
  if (!strip) return null;
  if (isFold(strip)) {
    if (strip.kind === 'component' && x >= kLabelWidth) return foldedSpanAt(view, t, strip.rows, x);
    const what = strip.kind === 'more' ? strip.name : `${strip.folded ? 'show' : 'fold'} ${strip.name}`;
    return { record: 'fold', index: -1, text: `click: ${what}`, fold: strip.key };
  }
  if (x < kLabelWidth) return { record: 'value', index: -1, text: `${t.lanes[strip.lane].path}\n${describe(strip)}` };
  const scale = view.scale;
  const time = scale.t(x);
  const slack = scale.perPixel * 4;
  if (strip.kind === 'counter' || strip.kind === 'state') {
    const values = strip.kind === 'counter' ? t.counters : t.states;
    const v = valueAt(values, values.series[strip.series], time);
    if (Number.isNaN(v)) return null;
    return {
      record: 'value',
      index: -1,
      text: `${strip.label.replace(/^· /, '')}: ${rateText(view, t, strip, time)}${valueText(t, strip, v)}\n${t.lanes[strip.lane].path}\nat ${formatDuration(Math.round(time))}`,
    };
  }
  if (strip.kind === 'spans') {
    if (at - strip.y < 6) {
      const mark = markAt(t, strip.lane, time, slack);
      if (mark) return mark;
    }
    const hit = laneSpanAt(t, strip, at, time, slack);
    if (hit) return hit;
  }
  return markAt(t, strip.lane, time, slack);
}

/** Of a counter that is shown by its slope: "12 Gb/s; so far ". */
function rateText(view: TimelineView, t: Trace, strip: LaneStrip & { kind: 'counter' | 'state' }, time: number): string {
  if (strip.kind === 'state' || !isRate(t, strip.series)) return '';
  const series = t.counters.series[strip.series];
  return `${formatRate(rateAt(t.counters, series, time, view.scale.perPixel * kStep), t.points[series.point])}; so far `;
}

/** "5 entries", "RTS". */
function valueText(t: Trace, strip: LaneStrip & { kind: 'counter' | 'state' }, v: number): string {
  if (strip.kind === 'state') return stateName(t, strip.lane, v);
  return `${v} ${t.points[t.counters.series[strip.series].point].args[0] ?? ''}`.trim();
}

function laneSpanAt(t: Trace, strip: LaneStrip & { kind: 'spans' }, y: number, time: number, slack: number): Hit | null {
  const slot = strip.step > 0 ? Math.min(strip.rows - 1, Math.floor((y - strip.y) / strip.step)) : -1;
  const rows = slot >= 0 ? [slot] : Array.from({ length: strip.rows }, (_, k) => k);
  for (const k of rows) {
    const i = spanAt(t.spans, t.rows, strip.firstRow + k, time, slack);
    if (i >= 0) return { record: 'span', index: i, text: spanText(t, i) };
  }
  return null;
}

function foldedSpanAt(view: TimelineView, t: Trace, rows: number[], x: number): Hit | null {
  for (const row of rows) {
    const i = spanAt(t.spans, t.rows, row, view.scale.t(x), view.scale.perPixel);
    if (i >= 0) return { record: 'span', index: i, text: spanText(t, i) };
  }
  return null;
}

/** What a strip shows. */
function describe(strip: LaneStrip): string {
  switch (strip.kind) {
    case 'spans':
      return strip.rows > 1 ? `spans, up to ${strip.rows} at once` : 'spans';
    case 'marks':
      return 'instants and packets';
    default:
      return `${strip.kind} ${strip.label.replace(/^· /, '')}`;
  }
}

function markAt(t: Trace, lane: number, time: number, slack: number): Hit | null {
  const i = nearest(t.instants.t, t.instantOffset[lane], t.instantOffset[lane + 1], time, slack);
  const p = nearest(t.packets.t, t.packetOffset[lane], t.packetOffset[lane + 1], time, slack);
  const instant = i >= 0 && (p < 0 || Math.abs(t.instants.t[i] - time) <= Math.abs(t.packets.t[p] - time));
  if (instant) {
    const point = t.points[t.instants.point[i]];
    return {
      record: 'instant',
      index: i,
      text: [point.name, ...argumentLines(point, t.instants.args, i), `at ${formatDuration(t.instants.t[i])}`].join('\n'),
    };
  }
  if (p < 0) return null;
  const { tx, len, msg } = t.packets;
  return {
    record: 'packet',
    index: p,
    text: `${tx[p] ? 'sent' : 'received'}: frame of ${len[p]} bytes${msg[p] ? `, message ${msg[p]}` : ''}\nat ${formatDuration(t.packets.t[p])}`,
  };
}

function nearest(key: Float64Array, from: number, to: number, t: number, slack: number): number {
  const i = lowerBound(key, t, from, to);
  let best = -1;
  for (const k of [i - 1, i]) {
    if (k < from || k >= to || Math.abs(key[k] - t) > slack) continue;
    if (best < 0 || Math.abs(key[k] - t) < Math.abs(key[best] - t)) best = k;
  }
  return best;
}

export function argumentLines(point: Point, args: Float64Array[], i: number): string[] {
  return point.args.map((a, k) => {
    const v = args[k][i];
    const name = valueName(point.name, a, v);
    return `${a} ${formatArgument(a, v)}${name ? ` (${name})` : ''}`;
  });
}

function spanText(t: Trace, i: number): string {
  const { spans } = t;
  const point = t.points[spans.point[i]];
  const wait = spans.wait[i] > 0 ? `, waited ${formatDuration(spans.wait[i])}` : '';
  const msg = spans.msg[i] > 0 ? `message ${spans.msg[i]}` : 'no message';
  return [
    `${point.name}, ${msg}`,
    `${formatDuration(spans.dur[i])}${wait}`,
    ...argumentLines(point, spans.args, i),
    t.lanes[spans.lane[i]].path,
  ].join('\n');
}
