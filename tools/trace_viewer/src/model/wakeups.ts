// SPDX-License-Identifier: Apache-2.0
// Lost wake-ups: a completion queue is armed while completions that its consumer has not counted lie in it, and no completion event
// follows until the trace ends. Whoever waits for that event waits for ever. Needs the points hca.cqe, hca.cq_doorbell and hca.eqe,
// traced from the queue's creation on.
import type { Problem } from './problems';
import type { Trace } from './types';

interface Queue {
  /** Ends of the CQE writes, ascending. */
  cqes: number[];
  armed: { t: number; ci: number; index: number; lane: number } | null;
  /** Latest completion event. */
  event: number;
  lastMessage: number;
}

export function findLostWakeUps(trace: Trace): Problem[] {
  const point = (name: string) => trace.points.findIndex((p) => p?.name === name);
  const cqe = point('hca.cqe');
  const arm = point('hca.cq_doorbell');
  const eqe = point('hca.eqe');
  if (cqe < 0 || arm < 0 || !trace.complete) return [];
  const queues = new Map<string, Queue>();
  const queue = (lane: number, cqn: number): Queue => {
    const key = `${trace.lanes[lane].host} ${cqn}`;
    let q = queues.get(key);
    if (!q) queues.set(key, (q = { cqes: [], armed: null, event: -1, lastMessage: 0 }));
    return q;
  };
  const { spans, instants } = trace;
  const column = (p: number, arg: string, args: Float64Array[]) => args[Math.max(0, trace.points[p].args.indexOf(arg))];
  const cqeCqn = column(cqe, 'cqn', spans.args);
  for (let i = 0; i < spans.n; ++i) {
    const end = spans.start[i] + spans.dur[i];
    if (spans.point[i] === cqe) {
      const q = queue(spans.lane[i], cqeCqn[i]);
      q.cqes.push(end);
      q.lastMessage = spans.msg[i];
    } else if (spans.point[i] === eqe && column(eqe, 'type', spans.args)[i] === 0) {
      const q = queue(spans.lane[i], column(eqe, 'object', spans.args)[i]);
      q.event = Math.max(q.event, end);
    }
  }
  for (let i = 0; i < instants.n; ++i) {
    if (instants.point[i] !== arm) continue;
    const q = queue(instants.lane[i], column(arm, 'cqn', instants.args)[i]);
    if (q.armed && q.armed.t > instants.t[i]) continue;
    q.armed = { t: instants.t[i], ci: column(arm, 'ci', instants.args)[i], index: i, lane: instants.lane[i] };
  }
  const problems: Problem[] = [];
  for (const [key, q] of queues) {
    if (!q.armed || q.event >= q.armed.t) continue;
    // The consumer index of the doorbell has 24 bits.
    const unseen = (q.cqes.length - q.armed.ci) & 0xffffff;
    if (unseen === 0 || unseen > q.cqes.length) continue;
    problems.push({
      severity: 'error',
      kind: 'lost wake-up',
      text: `CQ ${key.split(' ')[1]} was armed at index ${q.armed.ci} with ${unseen} completion(s) unseen in it; no event came after that`,
      t: q.armed.t,
      lane: q.armed.lane,
      msg: q.lastMessage,
      at: { record: 'instant', index: q.armed.index },
    });
  }
  return problems;
}
