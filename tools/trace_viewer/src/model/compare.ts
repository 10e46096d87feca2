// SPDX-License-Identifier: Apache-2.0
// Two traces side by side: their messages are aligned by id (the order of posts), stages by name.
import { mean, percentile, sorted } from './stats';
import type { Trace } from './types';
import { Status, kNone } from './types';

export interface Pair {
  id: number;
  /** Rows in the message tables of a and b. */
  a: number;
  b: number;
  /** b - a, in ps. */
  delta: number;
}
export interface StageDelta {
  stage: string;
  /** Mean over the paired messages, in ps; NaN when a trace has no such stage. */
  a: number;
  b: number;
}
export interface Comparison {
  pairs: Pair[];
  stages: StageDelta[];
  /** Delivered messages without a counterpart. */
  onlyA: number;
  onlyB: number;
  /** Messages that differ in operation or size: the traces may not be of the same workload. */
  unlike: number;
  quantiles: { name: string; a: number; b: number }[];
}

export function compare(a: Trace, b: Trace): Comparison {
  const pairs: Pair[] = [];
  let onlyA = 0;
  let unlike = 0;
  const rowOf = (t: Trace, id: number) => (id < t.messageRow.length && t.messageRow[id] !== kNone ? t.messageRow[id] : -1);
  const finished = (t: Trace, r: number) => r >= 0 && t.messages.status[r] === Status.ok;
  for (let r = 0; r < a.messages.n; ++r) {
    if (!finished(a, r)) continue;
    const id = a.messages.id[r];
    const s = rowOf(b, id);
    if (!finished(b, s)) {
      ++onlyA;
      continue;
    }
    if (a.messages.op[r] !== b.messages.op[s] || a.messages.bytes[r] !== b.messages.bytes[s]) ++unlike;
    pairs.push({ id, a: r, b: s, delta: b.messages.total[s] - a.messages.total[r] });
  }
  const paired = new Set(pairs.map((p) => p.b));
  let onlyB = 0;
  for (let s = 0; s < b.messages.n; ++s) if (finished(b, s) && !paired.has(s)) ++onlyB;
  const ta = sorted(pairs.map((p) => a.messages.total[p.a]));
  const tb = sorted(pairs.map((p) => b.messages.total[p.b]));
  const quantiles = [
    { name: 'min', a: percentile(ta, 0), b: percentile(tb, 0) },
    { name: 'mean', a: mean(ta), b: mean(tb) },
    { name: 'p50', a: percentile(ta, 0.5), b: percentile(tb, 0.5) },
    { name: 'p99', a: percentile(ta, 0.99), b: percentile(tb, 0.99) },
    { name: 'max', a: percentile(ta, 1), b: percentile(tb, 1) },
  ];
  return { pairs, stages: stageDeltas(a, b, pairs), onlyA, onlyB, unlike, quantiles };
}

/** Names of both traces' stages, in the order of a, with those of b put behind the stage that precedes them there. */
export function stageNames(a: string[], b: string[]): string[] {
  const out = a.slice();
  b.forEach((s, i) => {
    if (out.includes(s)) return;
    const before = i > 0 ? out.indexOf(b[i - 1]) : -1;
    out.splice(before + 1, 0, s);
  });
  return out;
}

function stageDeltas(a: Trace, b: Trace, pairs: Pair[]): StageDelta[] {
  if (a.messages.stages.length === 0 || b.messages.stages.length === 0) return [];
  return stageNames(a.header.stages, b.header.stages).map((stage) => {
    const ca = a.messages.stages[a.header.stages.indexOf(stage)];
    const cb = b.messages.stages[b.header.stages.indexOf(stage)];
    return {
      stage,
      a: ca ? mean(pairs.map((p) => ca[p.a])) : NaN,
      b: cb ? mean(pairs.map((p) => cb[p.b])) : NaN,
    };
  });
}
