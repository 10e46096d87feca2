// SPDX-License-Identifier: Apache-2.0
// What the user can do, as functions on the state: open files, select, jump, step from message to message or match to match.
import { batch } from '@preact/signals';
import { formatDuration } from '../model/time';
import { opName, statusText } from '../model/search';
import type { Problem } from '../model/problems';
import type { Trace } from '../model/types';
import { Status } from '../model/types';
import type { Reply } from '../parse/worker';
import ParserWorker from '../parse/worker?worker&inline';
import { spanLabel } from '../view/draw';
import type { TimeWindow } from '../view/viewport';
import { around, clampWindow } from '../view/viewport';
import * as s from './state';
import type { Side } from './state';

/** Loads a file into side a or b, after those asked for before. Resolves when it is shown or has failed. */
export function open(blob: Blob, name: string, side: Side = 'a'): Promise<void> {
  pending = pending.then(() => read(blob, name, side));
  return pending;
}
let pending: Promise<void> = Promise.resolve();

function read(blob: Blob, name: string, side: Side): Promise<void> {
  s.failure.value = '';
  s.loading.value = { text: `reading ${name}`, done: 0 };
  const worker = new ParserWorker();
  return new Promise((resolve) => {
    const finish = () => {
      worker.terminate();
      s.loading.value = null;
      resolve();
    };
    worker.onmessage = (event: MessageEvent<Reply>) => {
      const reply = event.data;
      if (reply.kind === 'progress') {
        s.loading.value = { text: `${name}: ${reply.text}`, done: reply.done };
        return;
      }
      if (reply.kind === 'error') s.failure.value = reply.text;
      else show(reply.trace, reply.ms, side);
      finish();
    };
    worker.onerror = (event) => {
      s.failure.value = `${name}: ${event.message || 'the reader failed'}`;
      finish();
    };
    worker.postMessage({ name, blob });
  });
}

function show(trace: Trace, ms: number, side: Side): void {
  batch(() => {
    if (side === 'b') {
      s.b.value = s.loaded(trace, ms);
      s.tab.value = 'compare';
      return;
    }
    s.a.value = s.loaded(trace, ms);
    s.selected.value = null;
    s.message.value = 0;
    s.latencyRange.value = null;
    s.range.value = null;
    s.quantity.value = '';
    s.hiddenLanes.value = new Set();
    s.toggledFolds.value = new Set();
    s.view.value = whole(trace);
  });
  const m = trace.messages.n;
  s.announcement.value = `${trace.name} is open: ${trace.spans.n} spans, ${m} messages`;
}

export function close(side: Side): void {
  batch(() => {
    if (side === 'b') s.b.value = null;
    else s.a.value = null;
  });
}

/** From the first post to the last delivery, or everything when there is no message. */
export function whole(trace: Trace): TimeWindow {
  let t0 = Infinity;
  let t1 = -Infinity;
  const m = trace.messages;
  for (let r = 0; r < m.n; ++r) {
    if (m.t[r] < t0) t0 = m.t[r];
    const end = m.t[r] + (m.status[r] === Status.ok ? m.total[r] : 0);
    if (end > t1) t1 = end;
  }
  if (!(t1 > t0)) return everything(trace);
  return clampWindow(around(t0, t1, 0.02), trace.t0, trace.t1);
}
export function everything(trace: Trace): TimeWindow {
  return clampWindow(around(trace.t0, Math.max(trace.t1, trace.t0 + 1000), 0.01), trace.t0, trace.t1);
}

export function setView(w: TimeWindow): void {
  const t = s.a.value?.trace;
  if (t) s.view.value = clampWindow(w, t.t0, t.t1);
}

/** Selects a message; `reveal` brings its whole path into view. */
export function selectMessage(id: number, reveal: boolean): void {
  batch(() => {
    s.message.value = id;
    if (id === 0) return;
    s.side.value = 'message';
    const t = s.a.value?.trace;
    const r = s.messageRow.value;
    if (!t || r < 0) return;
    if (reveal) setView(around(...reachOfBoth(t, r)));
    s.announcement.value = `message ${id}, ${opName(t.messages.op[r])}, ${formatDuration(t.messages.total[r])}, ${statusText(t, r)}`;
  });
}

/** The reach of message row r, or of its twin in the second trace if that is longer. */
export function reachOfBoth(t: Trace, r: number): [number, number] {
  const [from, to] = reach(t, r);
  const other = s.b.value?.trace;
  if (!other || s.messageRowB.value < 0) return [from, to];
  const [a, z] = reach(other, s.messageRowB.value);
  return [from, Math.max(to, from + z - a)];
}

/** From the post of message row r to its delivery, or to its last span. */
export function reach(t: Trace, r: number): [number, number] {
  const m = t.messages;
  if (m.status[r] === Status.ok) return [m.t[r], m.t[r] + m.total[r]];
  let end = m.t[r];
  const { offset, list } = t.spansOf;
  for (let k = offset[m.id[r]]; k < offset[m.id[r] + 1]; ++k) end = Math.max(end, t.spans.start[list[k]] + t.spans.dur[list[k]]);
  return [m.t[r], end];
}

export function selectSpan(index: number, side: Side = 'a'): void {
  const t = (side === 'a' ? s.a : s.b).value?.trace;
  if (!t) return;
  batch(() => {
    s.selected.value = { record: 'span', index, side };
    if (t.spans.msg[index] > 0) s.message.value = t.spans.msg[index];
    // A span of no message has nothing to show in the panel of messages.
    else s.side.value = 'record';
    s.announcement.value = `${spanLabel(t, index)} on ${t.lanes[t.spans.lane[index]].path}, ${formatDuration(t.spans.dur[index])}`;
  });
}
export function selectMark(record: 'instant' | 'packet', index: number, side: Side = 'a'): void {
  const t = (side === 'a' ? s.a : s.b).value?.trace;
  if (!t) return;
  const records = record === 'instant' ? t.instants : t.packets;
  batch(() => {
    s.selected.value = { record, index, side };
    s.side.value = 'record';
    if (records.msg[index] > 0) s.message.value = records.msg[index];
    s.announcement.value = `${t.points[records.point[index]].name} on ${t.lanes[records.lane[index]].path}`;
  });
}

/** Shows span i of trace a in the middle, keeping the zoom unless the span would be a speck or not fit. */
export function jumpToSpan(i: number): void {
  const t = s.a.value?.trace;
  if (!t) return;
  selectSpan(i);
  center(t.spans.start[i], t.spans.dur[i]);
  revealLane.value = { lane: t.spans.lane[i], nonce: ++nonce };
}
/** Shows an instant or packet of trace a in the middle. */
export function jumpToMark(record: 'instant' | 'packet', i: number): void {
  const t = s.a.value?.trace;
  if (!t) return;
  const records = record === 'instant' ? t.instants : t.packets;
  selectMark(record, i);
  center(records.t[i], 0);
  revealLane.value = { lane: records.lane[i], nonce: ++nonce };
}
export function jumpToProblem(p: Problem): void {
  const t = s.a.value?.trace;
  if (!t) return;
  if (p.at?.record === 'span') return jumpToSpan(p.at.index);
  batch(() => {
    s.message.value = p.msg;
    if (p.at) {
      s.selected.value = { record: 'instant', index: p.at.index, side: 'a' };
      s.side.value = 'record';
    }
  });
  if (p.to !== undefined) setView(around(p.t, p.to, 0.5));
  else center(p.t, 0);
  if (p.lane >= 0) revealLane.value = { lane: p.lane, nonce: ++nonce };
}

function center(start: number, dur: number): void {
  const w = s.view.value;
  let length = w.to - w.from;
  if (length > 400 * Math.max(dur, 50_000)) length = 40 * Math.max(dur, 100_000);
  if (dur > length * 0.8) length = dur * 1.3;
  const middle = start + dur / 2;
  setView({ from: middle - length / 2, to: middle + length / 2 });
}

export function toggleFold(key: string): void {
  const next = new Set(s.toggledFolds.value);
  if (!next.delete(key)) next.add(key);
  s.toggledFolds.value = next;
}

/** The timeline scrolls to this lane when the nonce changes. */
export const revealLane = { value: { lane: -1, nonce: 0 } };
let nonce = 0;

/** Next or previous message of the filtered table, by id. */
export function stepMessage(by: 1 | -1): void {
  const t = s.a.value?.trace;
  const rows = s.messageRows.value;
  if (!t || rows.length === 0) return;
  const at = rows.findIndex((r) => t.messages.id[r] === s.message.value);
  let next = at + by;
  if (at < 0) {
    // Nothing selected: the first one that is posted in view.
    next = rows.findIndex((r) => t.messages.t[r] >= s.view.value.from);
    if (next < 0) next = 0;
  }
  const r = rows[Math.min(Math.max(next, 0), rows.length - 1)];
  selectMessage(t.messages.id[r], true);
}

/** Next or previous span or instant that matches the search, in time. */
export function stepMatch(by: 1 | -1): void {
  const t = s.a.value?.trace;
  if (!t) return;
  const sel = s.selected.value;
  const chosen = sel?.side === 'a' && sel.record !== 'packet' ? sel : null;
  const w = s.view.value;
  const timeOf = (record: 'span' | 'instant', i: number) => (record === 'span' ? t.spans.start[i] : t.instants.t[i]);
  // Of several at one time, spans stand before instants, and lower indices first.
  type Match = { record: 'span' | 'instant'; index: number };
  const order = (x: Match, y: Match) =>
    timeOf(x.record, x.index) - timeOf(y.record, y.index) ||
    Number(x.record === 'instant') - Number(y.record === 'instant') ||
    x.index - y.index;
  const here = chosen ? { record: chosen.record as 'span' | 'instant', index: chosen.index } : null;
  const middle = (w.from + w.to) / 2;
  let best: Match | null = null;
  let wrap: Match | null = null;
  const consider = (record: 'span' | 'instant', list: Uint32Array | null) => {
    for (const index of list ?? []) {
      const m = { record, index };
      const ahead = here ? order(m, here) * by > 0 : (timeOf(record, index) - middle) * by >= 0;
      if (ahead && (!best || order(m, best) * by < 0)) best = m;
      if (!wrap || order(m, wrap) * by < 0) wrap = m;
    }
  };
  consider('span', s.matches.value);
  consider('instant', s.matchingInstants.value);
  const found = (best ?? wrap) as Match | null;
  if (!found) return;
  if (found.record === 'span') jumpToSpan(found.index);
  else jumpToMark('instant', found.index);
}

/** The span before or after the selected one in its row. */
export function stepSpan(by: 1 | -1): void {
  const t = s.a.value?.trace;
  const sel = s.selected.value;
  if (!t) return;
  if (sel?.record !== 'span' || sel.side !== 'a') return selectFirst(t);
  const next = sel.index + by;
  if (next >= 0 && next < t.spans.n && t.spans.lane[next] === t.spans.lane[sel.index]) jumpToSpan(next);
}

/** The first span in the window, of the selected message if there is one. */
function selectFirst(t: Trace): void {
  const w = s.view.value;
  const mine = s.line.value?.spans;
  let best = -1;
  const consider = (i: number) => {
    const { start, dur } = t.spans;
    if (start[i] + dur[i] >= w.from && start[i] <= w.to && (best < 0 || start[i] < start[best])) best = i;
  };
  if (mine && mine.length > 0) mine.forEach(consider);
  else for (let i = 0; i < t.spans.n; ++i) consider(i);
  if (best >= 0) jumpToSpan(best);
}

/** Along the arrows of a life-line: from the selected span to its effect, or back to its cause. */
export function stepCause(by: 1 | -1): void {
  const t = s.a.value?.trace;
  const sel = s.selected.value;
  if (!t) return;
  if (sel?.record !== 'span' || sel.side !== 'a') return selectFirst(t);
  const arrows = s.line.value?.arrows ?? [];
  const next = by > 0 ? arrows.find((a) => a.from === sel.index)?.to : arrows.find((a) => a.to === sel.index)?.from;
  if (next !== undefined) jumpToSpan(next);
}

export function clearSelection(): void {
  batch(() => {
    s.selected.value = null;
    s.message.value = 0;
    s.range.value = null;
  });
}
