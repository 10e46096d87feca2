// SPDX-License-Identifier: Apache-2.0
// The life-line of a message: its spans and the arrows between them. An arrow runs from a span's recorded cause; a span without one
// gets an implied arrow from the span of the same message that ended last before it began. Arrows never follow mere order in time
// where a cause is recorded.
import type { Trace } from './types';
import { kNone } from './types';

export interface Arrow {
  /** Span indices. */
  from: number;
  to: number;
  /** No cause is recorded: this is the likely one. */
  implied: boolean;
}

export interface Lifeline {
  msg: number;
  /** Spans of the message by start; causes that belong to no message or to another are at the end of `others`. */
  spans: number[];
  others: number[];
  arrows: Arrow[];
}

export function spansOfMessage(trace: Trace, msg: number): number[] {
  const { offset, list } = trace.spansOf;
  if (msg <= 0 || msg + 1 >= offset.length) return [];
  const { start, id } = trace.spans;
  return Array.from(list.subarray(offset[msg], offset[msg + 1])).sort((a, b) => start[a] - start[b] || id[a] - id[b]);
}

/** Index of the span that caused span i, or -1. */
export function causeOf(trace: Trace, i: number): number {
  const parent = trace.spans.parent[i];
  if (parent === 0 || parent >= trace.byId.length) return -1;
  const at = trace.byId[parent];
  return at === kNone ? -1 : at;
}

/** Spans that name span i as their cause, by start. */
export function effectsOf(trace: Trace, i: number): number[] {
  const { parent, id, start } = trace.spans;
  const out: number[] = [];
  const me = id[i];
  if (me === 0) return out;
  for (let k = 0; k < trace.spans.n; ++k) if (parent[k] === me) out.push(k);
  return out.sort((a, b) => start[a] - start[b]);
}

export function lifeline(trace: Trace, msg: number): Lifeline {
  const spans = spansOfMessage(trace, msg);
  const mine = new Set(spans);
  const others: number[] = [];
  const arrows: Arrow[] = [];
  const { start, dur } = trace.spans;
  // Spans by their end, for implied causes: those that ended by a given time are a prefix.
  const byEnd = spans.slice().sort((a, b) => start[a] + dur[a] - (start[b] + dur[b]));
  let ended = 0;
  for (const i of spans) {
    while (ended < byEnd.length && start[byEnd[ended]] + dur[byEnd[ended]] <= start[i]) ++ended;
    const cause = causeOf(trace, i);
    if (cause >= 0) {
      arrows.push({ from: cause, to: i, implied: false });
      if (!mine.has(cause)) others.push(cause);
      continue;
    }
    const likely = lastBefore(byEnd, ended, i);
    if (likely >= 0) arrows.push({ from: likely, to: i, implied: true });
  }
  return { msg, spans, others: [...new Set(others)], arrows };
}

function lastBefore(byEnd: number[], ended: number, self: number): number {
  for (let k = ended - 1; k >= 0; --k) if (byEnd[k] !== self) return byEnd[k];
  return -1;
}
