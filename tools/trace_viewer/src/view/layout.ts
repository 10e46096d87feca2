// SPDX-License-Identifier: Apache-2.0
// Where lanes lie on the timeline: heights and offsets of every strip, from top to bottom, without the scroll position.
import type { LaneGroup } from '../model/lanes';
import { shortPath } from '../model/lanes';
import type { Trace } from '../model/types';

export const kAxisHeight = 26;
export const kLabelWidth = 196;
const kGroupHeight = 20;
const kGap = 4;

export type Strip =
  | { kind: 'group'; y: number; h: number; name: string }
  /** Span rows first..last of a lane, each rowHeight high. */
  | { kind: 'spans'; y: number; h: number; lane: number; label: string; firstRow: number; rows: number; rowHeight: number }
  /** Instants and packets of a lane without spans. */
  | { kind: 'marks'; y: number; h: number; lane: number; label: string }
  | { kind: 'counter' | 'state'; y: number; h: number; lane: number; label: string; series: number };

export interface Layout {
  strips: Strip[];
  height: number;
  /** Middle of the first row of each lane, for arrows; NaN when the lane is hidden. */
  rowY: Float64Array;
}

function rowHeight(rows: number): number {
  return rows === 1 ? 17 : rows === 2 ? 12 : rows <= 4 ? 9 : rows <= 6 ? 7 : 6;
}

export function layOut(trace: Trace, groups: LaneGroup[]): Layout {
  const rowsOf = new Map<number, { first: number; n: number }>();
  for (let r = 0; r < trace.rows.n; ++r) {
    const e = rowsOf.get(trace.rows.lane[r]);
    if (e) e.n++;
    else rowsOf.set(trace.rows.lane[r], { first: r, n: 1 });
  }
  const counters = seriesByLane(trace.counters.series);
  const states = seriesByLane(trace.states.series);
  const strips: Strip[] = [];
  const rowY = new Float64Array(trace.rows.n).fill(NaN);
  let y = 0;
  for (const g of groups) {
    strips.push({ kind: 'group', y, h: kGroupHeight, name: g.name });
    y += kGroupHeight + 2;
    for (const lane of g.lanes) {
      const label = shortPath(trace.lanes[lane], trace.header.hosts);
      const rows = rowsOf.get(lane);
      if (rows) {
        const height = rowHeight(rows.n);
        strips.push({ kind: 'spans', y, h: rows.n * height, lane, label, firstRow: rows.first, rows: rows.n, rowHeight: height });
        for (let s = 0; s < rows.n; ++s) rowY[rows.first + s] = y + (s + 0.5) * height;
        y += rows.n * height + kGap;
      } else if (hasMarks(trace, lane)) {
        strips.push({ kind: 'marks', y, h: 15, lane, label });
        y += 15 + kGap;
      }
      for (const series of states.get(lane) ?? []) {
        strips.push({
          kind: 'state',
          y,
          h: 15,
          lane,
          label: valueLabel(trace, label, trace.states.series[series].point, rows),
          series,
        });
        y += 15 + kGap;
      }
      for (const series of counters.get(lane) ?? []) {
        strips.push({
          kind: 'counter',
          y,
          h: 24,
          lane,
          label: valueLabel(trace, label, trace.counters.series[series].point, rows),
          series,
        });
        y += 24 + kGap;
      }
    }
    y += 4;
  }
  return { strips, height: y, rowY };
}

/** "  store_buffer entries" under a lane with spans, the lane's own name otherwise. */
function valueLabel(trace: Trace, lane: string, point: number, rows: unknown): string {
  const p = trace.points[point];
  const name = p.name.slice(p.name.indexOf('.') + 1);
  return rows ? `· ${name}` : name && !lane.endsWith(name) ? `${lane} ${name}` : lane;
}

function hasMarks(trace: Trace, lane: number): boolean {
  return trace.instantOffset[lane + 1] > trace.instantOffset[lane] || trace.packetOffset[lane + 1] > trace.packetOffset[lane];
}

function seriesByLane(series: Trace['counters']['series']): Map<number, number[]> {
  const out = new Map<number, number[]>();
  series.forEach((s, i) => out.set(s.lane, [...(out.get(s.lane) ?? []), i]));
  return out;
}

/** Row of span i. */
export function rowOfSpan(trace: Trace, i: number): number {
  const { offset } = trace.rows;
  let lo = 0;
  let hi = trace.rows.n - 1;
  while (lo < hi) {
    const mid = (lo + hi + 1) >>> 1;
    if (offset[mid] <= i) lo = mid;
    else hi = mid - 1;
  }
  return lo;
}

export function stripAt(layout: Layout, y: number): Strip | null {
  return layout.strips.find((s) => y >= s.y && y < s.y + s.h) ?? null;
}
