// SPDX-License-Identifier: Apache-2.0
// Lost wake-ups: a completion queue is armed while completions that its consumer has not counted lie in it, and no completion event
// follows until the trace ends. Whoever waits for that event waits for ever, unless it polls after arming: that shows in messages that
// end with the poll of a receive completion; for other completions the trace does not tell, and the entry says so. Needs the points
// hca.cqe, hca.cq_doorbell and hca.eqe, traced from the queue's creation on.
import type { Problem } from './problems';
import type { Trace } from './types';
import { Status, kNone } from './types';

interface Completion {
  t: number;
  msg: number;
  /** Of a received message, whose end is the poll of this completion. */
  receive: boolean;
}
interface Queue {
  completions: Completion[];
  armed: { t: number; ci: number; index: number; lane: number } | null;
  /** Latest completion event. */
  event: number;
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
    if (!q.armed || q.event >= q.armed.t) continue;
    // The consumer index of the doorbell has 24 bits.
    const unseen = (q.completions.length - q.armed.ci) & 0xffffff;
    if (unseen === 0 || unseen > q.completions.length) continue;
    q.completions.sort((a, b) => a.t - b.t);
    const waiting = q.completions.slice(-unseen).filter((c) => !polled(trace, c));
    if (waiting.length === 0) continue;
    const certain = waiting.some((c) => c.receive);
    problems.push({
      severity: certain ? 'error' : 'warning',
      kind: certain ? 'lost wake-up' : 'possible lost wake-up',
      text:
        `CQ ${key.split(' ')[1]} was armed at index ${q.armed.ci} with ${unseen} completion(s) unseen in it; no event came after that` +
        (certain ? '' : '; whether they were polled after arming is not in the trace'),
      t: q.armed.t,
      lane: q.armed.lane,
      msg: waiting[0].msg,
      at: { record: 'instant', index: q.armed.index },
    });
  }
  return problems;
}

/** Whether a receive completion that the arm did not count was polled all the same: its message has ended, which takes a poll. */
function polled(trace: Trace, c: Completion): boolean {
  const r = c.msg > 0 ? trace.messageRow[c.msg] : kNone;
  return c.receive && r !== kNone && trace.messages.status[r] === Status.ok;
}

function queueOf(trace: Trace, queues: Queues, lane: number, cqn: number): Queue {
  const key = `${trace.lanes[lane].host} ${cqn}`;
  let q = queues.get(key);
  if (!q) queues.set(key, (q = { completions: [], armed: null, event: -1 }));
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
      const q = queueOf(trace, queues, spans.lane[i], columnOf(trace, eqe, 'object', spans.args)[i]);
      q.event = Math.max(q.event, t);
    }
  }
}

function readArms(trace: Trace, queues: Queues, arm: number): void {
  const { instants } = trace;
  const cqn = columnOf(trace, arm, 'cqn', instants.args);
  const ci = columnOf(trace, arm, 'ci', instants.args);
  for (let i = 0; i < instants.n; ++i) {
    if (instants.point[i] !== arm) continue;
    const q = queueOf(trace, queues, instants.lane[i], cqn[i]);
    if (!q.armed || instants.t[i] >= q.armed.t) q.armed = { t: instants.t[i], ci: ci[i], index: i, lane: instants.lane[i] };
  }
}
