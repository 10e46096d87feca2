// SPDX-License-Identifier: Apache-2.0
// Spreads the spans of each lane over slots, so that spans that overlap are drawn above each other: each takes the lowest slot
// that is free. Beyond kMaxSlots the one that frees first takes them, overlapping.
import type { Rows } from './types';
import type { Grouped } from './sort';
import { groupBy } from './sort';

export const kMaxSlots = 8;

export interface Slotted {
  rows: Rows;
  /** Record indices sorted by (row, start). */
  order: Uint32Array;
  /** Lanes that needed more than kMaxSlots. */
  crowded: number;
}

/** `byLane`: records grouped by lane, each lane sorted by start. */
export function assignSlots(byLane: Grouped, lanes: number, start: Float64Array, dur: Float64Array): Slotted {
  const n = byLane.order.length;
  const slot = new Uint8Array(n);
  const used = new Uint8Array(lanes);
  const end = new Float64Array(kMaxSlots);
  let crowded = 0;
  for (let l = 0; l < lanes; ++l) {
    let open = 0;
    let over = false;
    for (let i = byLane.offset[l]; i < byLane.offset[l + 1]; ++i) {
      const r = byLane.order[i];
      let s = 0;
      while (s < open && end[s] > start[r]) ++s;
      if (s === kMaxSlots) {
        over = true;
        for (let k = (s = 0); k < kMaxSlots; ++k) if (end[k] < end[s]) s = k;
      }
      if (s === open) end[open++] = 0;
      end[s] = Math.max(end[s], start[r] + dur[r]);
      slot[r] = s;
    }
    used[l] = open;
    if (over) ++crowded;
  }
  const first = new Uint32Array(lanes + 1);
  for (let l = 0; l < lanes; ++l) first[l + 1] = first[l] + used[l];
  const count = first[lanes];
  const rowOf = new Uint32Array(n);
  const lane = new Uint32Array(count);
  const slotOf = new Uint8Array(count);
  for (let l = 0; l < lanes; ++l) {
    for (let s = 0; s < used[l]; ++s) {
      lane[first[l] + s] = l;
      slotOf[first[l] + s] = s;
    }
    for (let i = byLane.offset[l]; i < byLane.offset[l + 1]; ++i) {
      const r = byLane.order[i];
      rowOf[r] = first[l] + slot[r];
    }
  }
  const grouped = groupBy(rowOf, n, count, byLane.order);
  return { rows: { n: count, lane, slot: slotOf, offset: grouped.offset }, order: grouped.order, crowded };
}
