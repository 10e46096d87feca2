// SPDX-License-Identifier: Apache-2.0
// State of the page as signals, and the values derived from them. Views read these and call the functions of actions.ts; nothing else
// is shared between views.
import { computed, signal } from '@preact/signals';
import type { Comparison } from '../model/compare';
import { compare } from '../model/compare';
import { lanesOfMessage, orderLanes, usedLanes } from '../model/lanes';
import { lifeline } from '../model/lifeline';
import type { Problem } from '../model/problems';
import { findProblems } from '../model/problems';
import { matchInstants, matchMessages, matchSpans, parseQuery } from '../model/search';
import type { Trace } from '../model/types';
import { kDark, kLight, pointColors } from '../view/colors';
import type { TimeWindow } from '../view/viewport';

export type Side = 'a' | 'b';
export type Selected = { record: 'span' | 'instant' | 'packet'; index: number; side: Side } | null;
export type Tab = 'messages' | 'problems' | 'latency' | 'stages' | 'ladder' | 'compare' | 'lanes' | 'file';

/** Times of a stage ('' = the whole latency), in ps. */
export interface LatencyRange {
  stage: string;
  from: number;
  to: number;
}

export interface Loaded {
  trace: Trace;
  /** Milliseconds from the click to the trace, in the worker. */
  ms: number;
  used: Uint8Array;
  problems: Problem[];
}

export function loaded(trace: Trace, ms: number): Loaded {
  return { trace, ms, used: usedLanes(trace), problems: findProblems(trace) };
}

export const a = signal<Loaded | null>(null);
export const b = signal<Loaded | null>(null);
export const loading = signal<{ text: string; done: number } | null>(null);
export const failure = signal('');
export const view = signal<TimeWindow>({ from: 0, to: 1e6 });
export const query = signal('');
export const selected = signal<Selected>(null);
/** Selected message, 0 = none. */
export const message = signal(0);
export const tab = signal<Tab>('messages');
/** What the panel at the right shows: the selected message, the selected record or the measured range. */
export const side = signal<'message' | 'record' | 'range'>('message');
/** Measured with shift and drag, in times of trace a. */
export const range = signal<TimeWindow | null>(null);
export const onlyMessageLanes = signal(false);
/** One row per lane, no counters. */
export const compactLanes = signal(false);
/** Keys of the folds that are not as they are by default (view/layout.ts). */
export const toggledFolds = signal<ReadonlySet<string>>(new Set());
export const hiddenLanes = signal<ReadonlySet<number>>(new Set());
/** Latencies that the message table shows, from the histogram. */
export const latencyRange = signal<LatencyRange | null>(null);
/** What the latency charts show: a stage, or '' for the whole latency. */
export const quantity = signal('');
export const theme = signal<'auto' | 'light' | 'dark'>('auto');
export const systemDark = signal(false);
export const helpOpen = signal(false);
/** Announced to screen readers. */
export const announcement = signal('');

export const palette = computed(() => (theme.value === 'dark' || (theme.value === 'auto' && systemDark.value) ? kDark : kLight));
export const parsed = computed(() => parseQuery(query.value));
export const searching = computed(() => parsed.value.terms.length > 0);

export const colors = computed(() => (a.value ? pointColors(a.value.trace.points, palette.value) : []));
export const colorsB = computed(() => (b.value ? pointColors(b.value.trace.points, palette.value) : []));

export const matchingInstants = computed(() => (a.value && searching.value ? matchInstants(a.value.trace, parsed.value) : null));
export const matchingInstantsB = computed(() => (b.value && searching.value ? matchInstants(b.value.trace, parsed.value) : null));
export const matches = computed(() => (a.value && searching.value ? matchSpans(a.value.trace, parsed.value) : null));
export const matchesB = computed(() => (b.value && searching.value ? matchSpans(b.value.trace, parsed.value) : null));

/** Rows of the message table that the search and the latency range admit, in file order. */
export const messageRows = computed(() => {
  const t = a.value?.trace;
  if (!t) return new Uint32Array(0);
  const rows = matchMessages(t, parsed.value);
  const range = latencyRange.value;
  const column = range && timesOf(t, range.stage);
  return column ? rows.filter((r) => column[r] >= range.from && column[r] <= range.to) : rows;
});

/** Times of a stage of all messages, or their latencies for ''; null if the trace has no such stage. */
export function timesOf(t: Trace, stage: string): Float64Array | null {
  if (stage === '') return t.messages.total;
  return t.messages.stages[t.header.stages.indexOf(stage)] ?? null;
}

export const messageRow = computed(() => rowOf(a.value, message.value));
export const messageRowB = computed(() => rowOf(b.value, message.value));
export const line = computed(() => (a.value && message.value > 0 ? lifeline(a.value.trace, message.value) : null));
export const lineB = computed(() => (b.value && message.value > 0 ? lifeline(b.value.trace, message.value) : null));

export const groups = computed(() => groupsOf(a.value));
export const groupsB = computed(() => groupsOf(b.value));
export const comparison = computed<Comparison | null>(() => (a.value && b.value ? compare(a.value.trace, b.value.trace) : null));

/** What to add to a time of trace a for the place in trace b that is shown beside it. */
export const offsetB = computed(() => {
  const pair = comparison.value?.pairs;
  if (!pair || pair.length === 0 || !a.value || !b.value) return 0;
  const p = pair.find((e) => e.id === message.value) ?? pair[0];
  return b.value.trace.messages.t[p.b] - a.value.trace.messages.t[p.a];
});

function rowOf(l: Loaded | null, id: number): number {
  if (!l || id <= 0 || id >= l.trace.messageRow.length) return -1;
  const r = l.trace.messageRow[id];
  return r === 0xffffffff ? -1 : r;
}

function groupsOf(l: Loaded | null) {
  if (!l) return [];
  const ofMessage = onlyMessageLanes.value && message.value > 0 ? lanesOfMessage(l.trace, message.value) : null;
  const hidden = hiddenLanes.value;
  return orderLanes(l.trace, (lane) => l.used[lane] > 0 && !hidden.has(lane) && (!ofMessage || ofMessage.has(lane)));
}
