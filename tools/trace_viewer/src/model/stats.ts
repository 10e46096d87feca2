// SPDX-License-Identifier: Apache-2.0
// Quantiles, histograms and distribution functions of message latencies. Percentiles are by nearest rank, as in results.

/** Finite values, ascending. */
export function sorted(values: ArrayLike<number>): Float64Array {
  const out: number[] = [];
  for (let i = 0; i < values.length; ++i) if (Number.isFinite(values[i])) out.push(values[i]);
  return Float64Array.from(out).sort();
}

/** The ceil(q × n)-th smallest; NaN of nothing. */
export function percentile(ascending: Float64Array, q: number): number {
  if (ascending.length === 0) return NaN;
  return ascending[Math.min(ascending.length - 1, Math.max(0, Math.ceil(q * ascending.length) - 1))];
}

export function mean(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; ++i) sum += values[i];
  return values.length > 0 ? sum / values.length : NaN;
}

export interface Histogram {
  /** bins + 1 edges; bin i holds edges[i] <= x < edges[i + 1], the last one its upper edge too. */
  edges: Float64Array;
  counts: Uint32Array;
}

/** Bins of equal width, or of equal ratio when `log`. */
export function histogram(ascending: Float64Array, bins: number, log: boolean): Histogram {
  const lo = ascending.length > 0 ? ascending[0] : 0;
  let hi = ascending.length > 0 ? ascending[ascending.length - 1] : 1;
  if (hi <= lo) hi = lo + Math.max(1, Math.abs(lo) * 1e-6);
  const edges = new Float64Array(bins + 1);
  const useLog = log && lo > 0;
  for (let i = 0; i <= bins; ++i) edges[i] = useLog ? lo * (hi / lo) ** (i / bins) : lo + ((hi - lo) * i) / bins;
  edges[0] = lo;
  edges[bins] = hi;
  const counts = new Uint32Array(bins);
  let b = 0;
  for (const x of ascending) {
    while (b < bins - 1 && x >= edges[b + 1]) ++b;
    counts[b]++;
  }
  return { edges, counts };
}

/** Steps of the distribution function, at most `most` of them. */
export function cdf(ascending: Float64Array, most: number): { x: number[]; share: number[] } {
  const n = ascending.length;
  const x: number[] = [];
  const share: number[] = [];
  const stride = Math.max(1, Math.floor(n / most));
  for (let i = stride - 1; i < n; i += stride) {
    x.push(ascending[i]);
    share.push((i + 1) / n);
  }
  if (n > 0 && x[x.length - 1] !== ascending[n - 1]) {
    x.push(ascending[n - 1]);
    share.push(1);
  }
  return { x, share };
}
