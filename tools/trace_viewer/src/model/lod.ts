// SPDX-License-Identifier: Apache-2.0
// Level-of-detail pyramid over the spans of each row, and the walk that yields what a row shows in a time window: single spans
// where they are wide enough, blocks where they are not. Blocks of a level lie kFanout to one block of the next.
import type { LodLevel, Rows, Spans } from './types';
import { lowerBound } from './sort';

export const kFanout = 8;

export function buildLod(spans: Spans, rows: Rows): LodLevel[] {
  const levels: LodLevel[] = [];
  let below: LodLevel | null = null;
  for (;;) {
    const offset = new Uint32Array(rows.n + 1);
    const source: Uint32Array = below ? below.offset : rows.offset;
    let widest = 0;
    for (let r = 0; r < rows.n; ++r) {
      const blocks: number = Math.ceil((source[r + 1] - source[r]) / kFanout);
      offset[r + 1] = offset[r] + blocks;
      widest = Math.max(widest, blocks);
    }
    const n = offset[rows.n];
    const level: LodLevel = {
      t0: new Float64Array(n),
      t1: new Float64Array(n),
      busy: new Float32Array(n),
      point: new Uint16Array(n),
      longest: new Float32Array(n),
      offset,
    };
    for (let r = 0; r < rows.n; ++r) fillRow(level, below, spans, source, r);
    levels.push(level);
    below = level;
    if (widest <= kFanout) return levels;
  }
}

function fillRow(level: LodLevel, below: LodLevel | null, spans: Spans, source: Uint32Array, r: number): void {
  const end = source[r + 1];
  for (let b = level.offset[r], i = source[r]; i < end; ++b, i += kFanout) {
    const stop = Math.min(i + kFanout, end);
    let t0 = Infinity;
    let t1 = -Infinity;
    let busy = 0;
    let longest = -1;
    let point = 0;
    for (let j = i; j < stop; ++j) {
      const a = below ? below.t0[j] : spans.start[j];
      const z = below ? below.t1[j] : spans.start[j] + spans.dur[j];
      const d = below ? below.longest[j] : spans.dur[j];
      if (a < t0) t0 = a;
      if (z > t1) t1 = z;
      busy += below ? below.busy[j] : spans.dur[j];
      if (d > longest) {
        longest = d;
        point = below ? below.point[j] : spans.point[j];
      }
    }
    level.t0[b] = t0;
    level.t1[b] = t1;
    level.busy[b] = busy;
    level.longest[b] = longest;
    level.point[b] = point;
  }
}

/** What walkRow yields. `span` is the span's index, or -1 for a block with its share of busy time. */
export type Visit = (t0: number, t1: number, point: number, span: number, busy: number) => void;

/**
 * Visits what row r shows between `from` and `to`. Blocks narrower than `finest` (ps) are not split further. Calls are in the order of
 * start times.
 */
export function walkRow(
  spans: Spans,
  rows: Rows,
  lod: LodLevel[],
  r: number,
  from: number,
  to: number,
  finest: number,
  visit: Visit,
): void {
  const top = lod.length - 1;
  for (let b = lod[top].offset[r]; b < lod[top].offset[r + 1]; ++b) descend(top, b);

  function descend(k: number, b: number): void {
    const level = lod[k];
    if (level.t1[b] < from || level.t0[b] > to) return;
    const width = level.t1[b] - level.t0[b];
    if (width < finest) {
      visit(level.t0[b], level.t1[b], level.point[b], -1, width > 0 ? Math.min(1, level.busy[b] / width) : 1);
      return;
    }
    const within = b - level.offset[r];
    if (k > 0) {
      const first = lod[k - 1].offset[r] + within * kFanout;
      const stop = Math.min(first + kFanout, lod[k - 1].offset[r + 1]);
      for (let c = first; c < stop; ++c) descend(k - 1, c);
      return;
    }
    const first = rows.offset[r] + within * kFanout;
    const stop = Math.min(first + kFanout, rows.offset[r + 1]);
    for (let i = first; i < stop; ++i) {
      const t0 = spans.start[i];
      const t1 = t0 + spans.dur[i];
      if (t1 >= from && t0 <= to) visit(t0, t1, spans.point[i], i, 1);
    }
  }
}

/** The span of row r nearest to time t, at most `slack` away; -1 if none. Where spans overlap, the later one. */
export function spanAt(spans: Spans, rows: Rows, r: number, t: number, slack: number): number {
  const from = rows.offset[r];
  let i = lowerBound(spans.start, t + slack, from, rows.offset[r + 1]) - 1;
  let best = -1;
  let distance = slack;
  // Spans of a crowded last slot overlap: look back over a few.
  for (let tried = 0; i >= from && tried < 64; --i, ++tried) {
    const end = spans.start[i] + spans.dur[i];
    const d = t < spans.start[i] ? spans.start[i] - t : t > end ? t - end : 0;
    if (d === 0) return i;
    if (d <= distance) {
      distance = d;
      best = i;
    }
    if (best >= 0 && end < t - slack) break;
  }
  return best;
}
