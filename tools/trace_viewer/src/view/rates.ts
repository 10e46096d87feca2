// SPDX-License-Identifier: Apache-2.0
// Counters that only rise, such as the bytes that a link has carried, are shown by their slope: the load. Between two records the slope
// is even, so however far one zooms in, it is the mean since the record before.
import { lowerBound } from '../model/sort';
import type { Point, Series, Trace, Values } from '../model/types';
import type { Scale } from './viewport';

/** What a rising counter's point or lane is called; others that happen to rise, such as a queue that fills, are levels. */
const kCumulative = /(wire_bytes|misses|_total)$/;
/** Width of a step of the profile, in pixels. */
export const kStep = 2;

const rising = new WeakMap<Values, Map<number, boolean>>();

/** Whether series number s of the counters is shown by its slope. */
export function isRate(trace: Trace, s: number): boolean {
  const { counters } = trace;
  const series = counters.series[s];
  if (!kCumulative.test(trace.points[series.point].name) && !kCumulative.test(trace.lanes[series.lane].path)) return false;
  let known = rising.get(counters);
  if (!known) rising.set(counters, (known = new Map()));
  let yes = known.get(s);
  if (yes === undefined) {
    yes = true;
    for (let i = series.from + 1; i < series.to && yes; ++i) yes = counters.v[i] >= counters.v[i - 1];
    known.set(s, yes);
  }
  return yes;
}

/** The counter at time t, between records in proportion. */
function interpolated(c: Values, s: Series, t: number): number {
  const i = lowerBound(c.t, t, s.from, s.to);
  if (i === s.from) return c.v[s.from];
  if (i === s.to) return c.v[s.to - 1];
  const span = c.t[i] - c.t[i - 1];
  return span > 0 ? c.v[i - 1] + ((c.v[i] - c.v[i - 1]) * (t - c.t[i - 1])) / span : c.v[i];
}

/** Increase per picosecond around time t. */
export function rateAt(c: Values, s: Series, t: number, width: number): number {
  return (interpolated(c, s, t + width / 2) - interpolated(c, s, t - width / 2)) / width;
}

/** The slope over each step of the window, per picosecond. */
export function profile(c: Values, s: Series, scale: Scale): Float64Array {
  const steps = Math.ceil(scale.width / kStep);
  const out = new Float64Array(steps);
  const length = scale.perPixel * kStep;
  let before = interpolated(c, s, scale.window.from);
  for (let k = 0; k < steps; ++k) {
    const after = interpolated(c, s, scale.window.from + (k + 1) * length);
    out[k] = (after - before) / length;
    before = after;
  }
  return out;
}

/** "12.5 Gb/s" of bytes, else "3.2 /ms". */
export function formatRate(perPs: number, point: Point): string {
  const unit = point.args[0] ?? '';
  if (unit !== 'bytes') return `${short(perPs * 1e9)} /ms`;
  const bits = perPs * 8;
  return bits >= 1e-3 || bits === 0 ? `${short(bits * 1000)} Gb/s` : `${short(bits * 1e6)} Mb/s`;
}
function short(v: number): string {
  return String(+v.toPrecision(3));
}
