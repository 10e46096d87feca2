// SPDX-License-Identifier: Apache-2.0
// Index sorting for columns: group by a small integer key, then order each group by a Float64 key. Stable. Records come nearly
// sorted, so a group that is in order already costs one pass.

export interface Grouped {
  /** Record indices, group after group. */
  order: Uint32Array;
  /** First entry of each group; groups + 1 entries. */
  offset: Uint32Array;
}

/** Counting sort of 0..n-1 by key[i] < groups; `base` gives the order to keep inside a group. */
export function groupBy(key: ArrayLike<number>, n: number, groups: number, base?: Uint32Array): Grouped {
  const offset = new Uint32Array(groups + 1);
  for (let i = 0; i < n; ++i) offset[key[i] + 1]++;
  for (let g = 0; g < groups; ++g) offset[g + 1] += offset[g];
  const next = offset.slice(0, groups);
  const order = new Uint32Array(n);
  if (base) {
    for (let i = 0; i < n; ++i) {
      const r = base[i];
      order[next[key[r]]++] = r;
    }
  } else {
    for (let i = 0; i < n; ++i) order[next[key[i]]++] = i;
  }
  return { order, offset };
}

/** Sorts order[from..to) by key, stable. */
export function sortRange(order: Uint32Array, from: number, to: number, key: Float64Array): void {
  let sorted = true;
  for (let i = from + 1; i < to; ++i) {
    if (key[order[i]] < key[order[i - 1]]) {
      sorted = false;
      break;
    }
  }
  if (sorted) return;
  // Natural merge sort: runs that are in order already are found first.
  const n = to - from;
  let source = order.slice(from, to);
  let target = new Uint32Array(n);
  let runs: number[] = [0];
  for (let i = 1; i < n; ++i) if (key[source[i]] < key[source[i - 1]]) runs.push(i);
  runs.push(n);
  while (runs.length > 2) {
    const merged: number[] = [0];
    for (let r = 0; r + 1 < runs.length; r += 2) {
      const middle = runs[r + 1];
      const end = r + 2 < runs.length ? runs[r + 2] : middle;
      merge(source, target, runs[r], middle, end, key);
      merged.push(end);
    }
    [source, target] = [target, source];
    runs = merged;
  }
  order.set(source, from);
}

function merge(s: Uint32Array, t: Uint32Array, from: number, middle: number, end: number, key: Float64Array): void {
  let a = from;
  let b = middle;
  for (let o = from; o < end; ++o) {
    if (b >= end || (a < middle && key[s[a]] <= key[s[b]])) t[o] = s[a++];
    else t[o] = s[b++];
  }
}

/** Groups 0..n-1 by `group` and sorts each group by `key`. */
export function groupAndSort(group: ArrayLike<number>, n: number, groups: number, key: Float64Array): Grouped {
  const g = groupBy(group, n, groups);
  for (let i = 0; i < groups; ++i) sortRange(g.order, g.offset[i], g.offset[i + 1], key);
  return g;
}

/** Copy of column[order[…]] of the same type. The common types have loops of their own: one loop for all of them is three times slower. */
export function permute<T extends Float64Array | Uint32Array | Uint16Array | Uint8Array>(column: T, order: Uint32Array): T {
  if (column instanceof Float64Array) return permuteDoubles(column, order) as T;
  if (column instanceof Uint32Array) return permuteWords(column, order) as T;
  const out = new (column.constructor as new (n: number) => T)(order.length);
  for (let i = 0; i < order.length; ++i) out[i] = column[order[i]];
  return out;
}
function permuteDoubles(column: Float64Array, order: Uint32Array): Float64Array {
  const out = new Float64Array(order.length);
  for (let i = 0; i < order.length; ++i) out[i] = column[order[i]];
  return out;
}
function permuteWords(column: Uint32Array, order: Uint32Array): Uint32Array {
  const out = new Uint32Array(order.length);
  for (let i = 0; i < order.length; ++i) out[i] = column[order[i]];
  return out;
}

/** First index in [from, to) with key[i] >= x, else `to`. */
export function lowerBound(key: ArrayLike<number>, x: number, from: number, to: number): number {
  let lo = from;
  let hi = to;
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if (key[mid] < x) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}
