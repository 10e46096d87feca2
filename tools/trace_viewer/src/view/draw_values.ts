// SPDX-License-Identifier: Apache-2.0
// Draws counters as areas and states as labelled bars. A pixel that holds several values of a counter shows their range, so that no
// peak is lost however far one zooms out.
import { lowerBound } from '../model/sort';
import type { Series, Trace, Values } from '../model/types';
import type { Scene } from './draw';
import { clip } from './draw';
import type { LaneStrip } from './layout';
import { kLabelWidth } from './layout';
import type { Painter } from './painter';
import { isRate, kStep, profile } from './rates';

/** Maxima and minima over blocks of 64 values, made on first use. */
const kBlock = 64;
interface Extremes {
  max: Float64Array;
  min: Float64Array;
}
const extremesOf = new WeakMap<Values, Extremes>();

function extremes(values: Values): Extremes {
  let e = extremesOf.get(values);
  if (e) return e;
  const n = Math.ceil(values.n / kBlock);
  e = { max: new Float64Array(n).fill(-Infinity), min: new Float64Array(n).fill(Infinity) };
  for (let i = 0; i < values.n; ++i) {
    const b = Math.floor(i / kBlock);
    if (values.v[i] > e.max[b]) e.max[b] = values.v[i];
    if (values.v[i] < e.min[b]) e.min[b] = values.v[i];
  }
  extremesOf.set(values, e);
  return e;
}

/** Smallest and largest of values[from..to). */
export function rangeOf(values: Values, from: number, to: number): [number, number] {
  const e = extremes(values);
  let lo = Infinity;
  let hi = -Infinity;
  let i = from;
  while (i < to) {
    const b = i / kBlock;
    if (Number.isInteger(b) && i + kBlock <= to) {
      if (e.min[b] < lo) lo = e.min[b];
      if (e.max[b] > hi) hi = e.max[b];
      i += kBlock;
    } else {
      if (values.v[i] < lo) lo = values.v[i];
      if (values.v[i] > hi) hi = values.v[i];
      ++i;
    }
  }
  return [lo, hi];
}

/** A counter by its slope: the load of a link. The scale is that of what is on the screen. */
function drawRate(p: Painter, s: Scene, strip: LaneStrip & { kind: 'counter' | 'state' }, y: number): void {
  const values = s.trace.counters;
  const rates = profile(values, values.series[strip.series], s.scale);
  const most = rates.reduce((a, b) => Math.max(a, b), 0);
  if (most <= 0) return;
  p.globalAlpha = s.line || s.matches ? 0.6 : 1;
  for (const [style, thick] of [
    [s.palette.counter, 0],
    [s.palette.counterLine, 1],
  ] as const) {
    p.fillStyle = style;
    for (let k = 0; k < rates.length;) {
      let end = k + 1;
      const h = Math.round((rates[k] / most) * strip.h * 2) / 2;
      while (end < rates.length && Math.round((rates[end] / most) * strip.h * 2) / 2 === h) ++end;
      const x = kLabelWidth + k * kStep;
      if (h > 0 || thick) p.fillRect(x, y + strip.h - h, (end - k) * kStep, thick || h);
      k = end;
    }
  }
  p.globalAlpha = 1;
}

export function drawCounter(p: Painter, s: Scene, strip: LaneStrip & { kind: 'counter' | 'state' }, y: number): void {
  if (isRate(s.trace, strip.series)) return drawRate(p, s, strip, y);
  const values = s.trace.counters;
  const series = values.series[strip.series];
  const { scale } = s;
  const most = Math.max(series.max, 0);
  const least = Math.min(series.min, 0);
  const unit = strip.h / Math.max(most - least, 1);
  const zero = y + strip.h + least * unit;
  const right = kLabelWidth + scale.width;
  p.globalAlpha = s.line || s.matches ? 0.6 : 1;
  let i = Math.max(series.from, lowerBound(values.t, scale.window.from, series.from, series.to) - 1);
  p.fillStyle = s.palette.counter;
  const lines: number[] = [];
  while (i < series.to) {
    const x = Math.max(scale.x(values.t[i]), kLabelWidth);
    if (x > right) break;
    const next = Math.max(i + 1, lowerBound(values.t, scale.t(x + 1), i + 1, series.to));
    const end = next < series.to ? Math.min(scale.x(values.t[next]), right) : right;
    const [lo, hi] = rangeOf(values, i, next);
    const last = values.v[next - 1];
    const w = Math.max(end - x, 1);
    if (last !== 0) p.fillRect(x, zero - Math.max(last, 0) * unit, w, Math.abs(last) * unit);
    if (hi !== lo) lines.push(x, zero - hi * unit, 1, Math.max((hi - lo) * unit, 1));
    lines.push(x, zero - last * unit - 0.5, w, 1);
    i = next;
  }
  p.fillStyle = s.palette.counterLine;
  for (let k = 0; k < lines.length; k += 4) p.fillRect(lines[k], lines[k + 1], lines[k + 2], lines[k + 3]);
  p.globalAlpha = 1;
}

/** Value of a series at time t, NaN before its first. */
export function valueAt(values: Values, series: Series, t: number): number {
  const i = lowerBound(values.t, t + 1e-3, series.from, series.to) - 1;
  return i < series.from ? NaN : values.v[i];
}

export function stateName(trace: Trace, lane: number, value: number): string {
  return trace.lanes[lane].states[value] ?? String(value);
}

/** States in which nothing goes on. */
const kQuiet = /^(asleep|ended|idle|reset|free|off|none)$/i;

function stateColor(s: Scene, name: string, value: number): string {
  if (kQuiet.test(name)) return s.palette.dim;
  if (/^(err|error|sqe|failed|down)$/i.test(name)) return s.palette.dark ? '#8c3a36' : '#f2b3ae';
  return `hsl(${(value * 67 + 200) % 360} ${s.palette.dark ? 35 : 48}% ${s.palette.dark ? 36 : 80}%)`;
}

export function drawState(p: Painter, s: Scene, strip: LaneStrip & { kind: 'counter' | 'state' }, y: number): void {
  const values = s.trace.states;
  const series = values.series[strip.series];
  const { scale } = s;
  const right = kLabelWidth + scale.width;
  let i = Math.max(series.from, lowerBound(values.t, scale.window.from, series.from, series.to) - 1);
  p.font = '10px system-ui, sans-serif';
  p.textBaseline = 'middle';
  p.textAlign = 'left';
  while (i < series.to) {
    const x = Math.max(scale.x(values.t[i]), kLabelWidth);
    if (x > right) break;
    const next = Math.max(i + 1, lowerBound(values.t, scale.t(x + 1), i + 1, series.to));
    const end = next < series.to ? Math.min(scale.x(values.t[next]), right) : right;
    const v = values.v[next - 1];
    p.fillStyle = stateColor(s, stateName(s.trace, strip.lane, v), v);
    p.fillRect(x, y, Math.max(end - x - 0.5, 1), strip.h);
    if (end - x > 30) {
      p.fillStyle = s.palette.text;
      p.fillText(clip(stateName(s.trace, strip.lane, v), end - x - 6), x + 3, y + strip.h / 2);
    }
    i = next;
  }
}
