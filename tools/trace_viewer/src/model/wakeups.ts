// SPDX-License-Identifier: Apache-2.0
// Lost wake-ups: a completion queue is armed while completions that its consumer has not counted lie in it, and they raise no event.
// Whoever waits for that event waits for ever, or until the next completion raises one, unless it polls after arming: that shows in
// messages that end with the poll of a receive completion. For other completions the trace does not tell, and the entry says so. Needs
// the points hca.cqe, hca.cq_doorbell and hca.eqe, traced from the queue's creation on.
import type { Problem } from './problems';
import { lowerBound } from './sort';
import type { Trace } from './types';
import { Status, kNone } from './types';

interface Completion {
  t: number;
  msg: number;
  /** Of a received message, whose end is the poll of this completion. */
  receive: boolean;
}
interface Arm {
  t: number;
  ci: number;
  index: number;
  lane: number;
}
interface Queue {
  completions: Completion[];
  arms: Arm[];
  /** Times of completion events. */
  events: number[];
}
type Queues = Map<string, Queue>;

export function findLostWakeUps(trace: Trace): Problem[] {
  const point = (name: string) => trace.points.findIndex((p) => p?.name === name);
  const [cqe, arm, eqe] = [point('hca.cqe'), point('hca.cq_doorbell'), point('hca.eqe')];
  if (cqe < 0 || arm < 0 || !trace.complete) return [];
  const queues: Queues = new Map();
  readSpans(trace, queues, cqe, eqe);
  readArms(trace, queues, arm);
  const problems: Problem[] = [];
  for (const [key, q] of queues) {
    q.completions.sort((a, b) => a.t - b.t);
    q.events.sort((a, b) => a - b);
    q.arms.sort((a, b) => a.t - b.t);
    const cqn = key.split(' ')[1];
    q.arms.forEach((a, i) => {
      const found = i + 1 === q.arms.length ? neverWoken(trace, q, a, cqn) : wokenLate(trace, q, a, cqn);
      if (found) problems.push(found);
    });
  }
  return problems;
}

/** The last arm of a queue with completions unseen, after which no event came. */
function neverWoken(trace: Trace, q: Queue, arm: Arm, cqn: string): Problem | null {
  if (q.events.length > 0 && q.events[q.events.length - 1] >= arm.t) return wokenLate(trace, q, arm, cqn);
  const unseen = behind(q.completions.length, arm.ci);
  const waiting = q.completions.slice(q.completions.length - unseen).filter((c) => !polledBy(trace, c, Infinity));
  if (waiting.length === 0) return null;
  const certain = waiting.some((c) => c.receive);
  return {
    severity: certain ? 'error' : 'warning',
    kind: certain ? 'lost wake-up' : 'possible lost wake-up',
    text:
      `CQ ${cqn} was armed at index ${arm.ci} with ${unseen} completion(s) unseen in it; no event came after that` +
      (certain ? '' : '; whether they were polled after arming is not in the trace'),
    t: arm.t,
    lane: arm.lane,
    msg: waiting[0].msg,
    at: { record: 'instant', index: arm.index },
  };
}

/** An arm with received completions unseen that were polled only after an event which a later completion raised. */
function wokenLate(trace: Trace, q: Queue, arm: Arm, cqn: string): Problem | null {
  const event = q.events[lowerBound(q.events, arm.t, 0, q.events.length)];
  const times = q.completions.map((c) => c.t);
  const before = lowerBound(times, arm.t, 0, times.length);
  const unseen = behind(before, arm.ci);
  if (event === undefined || unseen === 0) return null;
  // An event that no later completion can have raised is the arm's own: the queue has fired at once.
  if (before === times.length || times[before] > event) return null;
  const waiting = q.completions.slice(before - unseen, before).filter((c) => c.receive && !polledBy(trace, c, event));
  if (waiting.length === 0) return null;
  return {
    severity: 'warning',
    kind: 'late wake-up',
    text: `CQ ${cqn} was armed at index ${arm.ci} with ${unseen} completion(s) unseen in it; the event came with the next completion, ${Math.round((event - arm.t) / 1000)} ns later`,
    t: arm.t,
    to: event,
    lane: arm.lane,
    msg: waiting[0].msg,
    at: { record: 'instant', index: arm.index },
  };
}

/** Completions beyond a consumer index of 24 bits; 0 if it cannot be right. */
function behind(count: number, ci: number): number {
  const n = (count - ci) & 0xffffff;
  return n > count ? 0 : n;
}

/** Whether a receive completion that an arm did not count was polled by `t` all the same: its message has ended, which takes a poll. */
function polledBy(trace: Trace, c: Completion, t: number): boolean {
  const r = c.msg > 0 ? trace.messageRow[c.msg] : kNone;
  const m = trace.messages;
  return c.receive && r !== kNone && m.status[r] === Status.ok && m.t[r] + m.total[r] <= t;
}

function queueOf(trace: Trace, queues: Queues, lane: number, cqn: number): Queue {
  const key = `${trace.lanes[lane].host} ${cqn}`;
  let q = queues.get(key);
  if (!q) queues.set(key, (q = { completions: [], arms: [], events: [] }));
  return q;
}

function columnOf(trace: Trace, point: number, arg: string, args: Float64Array[]): Float64Array {
  return args[Math.max(0, trace.points[point].args.indexOf(arg))];
}

function readSpans(trace: Trace, queues: Queues, cqe: number, eqe: number): void {
  const { spans } = trace;
  const cqn = columnOf(trace, cqe, 'cqn', spans.args);
  const opcode = columnOf(trace, cqe, 'opcode', spans.args);
  for (let i = 0; i < spans.n; ++i) {
    const t = spans.start[i] + spans.dur[i];
    if (spans.point[i] === cqe) {
      const receive = opcode[i] >= 1 && opcode[i] <= 4;
      queueOf(trace, queues, spans.lane[i], cqn[i]).completions.push({ t, msg: spans.msg[i], receive });
    } else if (spans.point[i] === eqe && columnOf(trace, eqe, 'type', spans.args)[i] === 0) {
      queueOf(trace, queues, spans.lane[i], columnOf(trace, eqe, 'object', spans.args)[i]).events.push(t);
    }
  }
}

function readArms(trace: Trace, queues: Queues, doorbell: number): void {
  const { instants } = trace;
  const cqn = columnOf(trace, doorbell, 'cqn', instants.args);
  const ci = columnOf(trace, doorbell, 'ci', instants.args);
  for (let i = 0; i < instants.n; ++i) {
    if (instants.point[i] !== doorbell) continue;
    const arm: Arm = { t: instants.t[i], ci: ci[i], index: i, lane: instants.lane[i] };
    queueOf(trace, queues, arm.lane, cqn[i]).arms.push(arm);
  }
}
