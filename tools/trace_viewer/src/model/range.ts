// SPDX-License-Identifier: Apache-2.0
// What happens in a range of time: work by lane and point, cut off at the ends of the range.
import { lowerBound } from './sort';
import type { Trace } from './types';
import { union } from './waterfall';

export interface Work {
  lane: number;
  point: number;
  /** Spans that overlap the range. */
  count: number;
  /** Time in which at least one of them is in service, and the sum over all of them, within the range. */
  busy: number;
  sum: number;
  /** Of whole spans. */
  longest: number;
  /** The first one that begins in the range, or the one under way. */
  first: number;
}

/** By busy time, the busiest first. */
export function workIn(trace: Trace, from: number, to: number): Work[] {
  const { rows, spans } = trace;
  const found = new Map<number, Work & { intervals: [number, number][] }>();
  for (let r = 0; r < rows.n; ++r) {
    const begin = rows.offset[r];
    const end = lowerBound(spans.start, to, begin, rows.offset[r + 1]);
    let i = lowerBound(spans.start, from, begin, end);
    // The span under way at `from`; spans of a row follow each other.
    if (i > begin && spans.start[i - 1] + spans.dur[i - 1] > from) --i;
    for (; i < end; ++i) {
      const key = spans.lane[i] * 65536 + spans.point[i];
      let w = found.get(key);
      if (!w) {
        w = { lane: spans.lane[i], point: spans.point[i], count: 0, busy: 0, sum: 0, longest: 0, first: i, intervals: [] };
        found.set(key, w);
      }
      const a = Math.max(spans.start[i], from);
      const z = Math.min(spans.start[i] + spans.dur[i], to);
      w.count++;
      w.sum += z - a;
      w.longest = Math.max(w.longest, spans.dur[i]);
      w.intervals.push([a, z]);
      if (spans.start[i] < spans.start[w.first]) w.first = i;
    }
  }
  return [...found.values()]
    .map(({ intervals, ...w }): Work => ({ ...w, busy: union(intervals) }))
    .sort((a, b) => b.busy - a.busy || a.lane - b.lane || a.point - b.point);
}
