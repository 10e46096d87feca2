// SPDX-License-Identifier: Apache-2.0
// The list of what went wrong or was repeated: drops, NAKs, RNR, retransmissions, overruns, error completions, faults, and lost
// wake-ups. What the file marks counts; rules by the names of points add to it, and a name that speaks of an error is enough without.
import { aethName, isErrorCompletion, syndromeName, valueName, wcStatusName } from '../decode/values';
import { findLostWakeUps } from './wakeups';
import type { Instants, Point, Spans, Trace } from './types';
import { Status, kLost, kUnderWay } from './types';

export type Severity = 'error' | 'warning' | 'info';
export interface Problem {
  severity: Severity;
  /** "retransmission", "RNR NAK" … */
  kind: string;
  text: string;
  t: number;
  /** End of what it is about, if it lasts. */
  to?: number;
  lane: number;
  msg: number;
  at: { record: 'span' | 'instant'; index: number } | null;
}

interface Rule {
  severity: Severity;
  kind: string;
  /** Which records of the point count; all if absent. */
  when?: (arg: (name: string) => number, point: Point) => boolean;
}

const failed = (arg: (name: string) => number) => arg('status') !== 0;
/** By point name; a rule without arguments lists each record. */
const kRules: Record<string, Rule> = {
  'fabric.drop': { severity: 'warning', kind: 'packet dropped' },
  'fabric.corrupt': { severity: 'warning', kind: 'packet corrupted' },
  'fabric.duplicate': { severity: 'warning', kind: 'packet duplicated' },
  'fabric.delay': { severity: 'warning', kind: 'packet delayed' },
  'fabric.reorder': { severity: 'warning', kind: 'packet reordered' },
  'fabric.link': { severity: 'warning', kind: 'link down', when: (arg) => arg('up') === 0 },
  'hca.rx_drop': { severity: 'warning', kind: 'packet dropped at the receiver' },
  'hca.nak': { severity: 'warning', kind: 'NAK' },
  'hca.rnr_nak': { severity: 'warning', kind: 'RNR NAK' },
  'hca.rnr_wait': { severity: 'warning', kind: 'RNR wait' },
  'hca.retransmit': { severity: 'warning', kind: 'retransmission' },
  'hca.cq_overrun': { severity: 'error', kind: 'CQ overrun' },
  'hca.eq_overflow': { severity: 'error', kind: 'EQ overflow' },
  'hca.srq_limit': { severity: 'info', kind: 'SRQ limit' },
  'hca.qp_state': { severity: 'error', kind: 'QP in error', when: (arg) => arg('state') === 6 || arg('state') === 4 },
  'hca.cqe': { severity: 'error', kind: 'error completion', when: (arg, p) => isErrorCompletion(p.name, arg('opcode')) },
  'hca.command': { severity: 'error', kind: 'command failed', when: failed },
  'kernel.command': { severity: 'error', kind: 'command failed', when: failed },
  'kernel.async_event': { severity: 'warning', kind: 'asynchronous event' },
  'kernel.uverbs_command': { severity: 'warning', kind: 'system call failed', when: (arg) => arg('result') !== 0 },
  'verbs.poll_cq': { severity: 'warning', kind: 'failure polled', when: (arg) => arg('failed') !== 0 },
  'iommu.walk': { severity: 'error', kind: 'IOMMU fault', when: (arg) => arg('fault') !== 0 },
  'iommu.fault': { severity: 'error', kind: 'IOMMU fault' },
  'pcie.dma_fault': { severity: 'error', kind: 'DMA fault' },
  'pcie.dma_read': { severity: 'error', kind: 'DMA read refused', when: failed },
};
const kSuspicious = /(error|fault|drop|overrun|nak|lost|retry|retransmit|timeout|overflow|stall_forever|corrupt)/;
/** More records of one kind than this are summed up: a trace of losses would drown the list. */
export const kMostPerKind = 2000;

export function findProblems(trace: Trace): Problem[] {
  const problems: Problem[] = [];
  const count = new Map<string, number>();
  const rules = trace.points.map((p) => ruleOf(p));
  const add = (p: Problem) => {
    const n = (count.get(p.kind) ?? 0) + 1;
    count.set(p.kind, n);
    if (n <= kMostPerKind) problems.push(p);
  };
  const judge = (record: 'span' | 'instant', index: number, records: Spans | Instants, t: number) => {
    const point = trace.points[records.point[index]];
    const rule = rules[point.id]!;
    const arg = argumentReader(point, records.args, index);
    if (rule.when && !rule.when(arg, point)) return;
    const { severity, kind } = rule;
    const place = { t, lane: records.lane[index], msg: records.msg[index] };
    add({ severity, kind, text: describe(point, arg), ...place, at: { record, index } });
  };
  const { spans, instants } = trace;
  for (let i = 0; i < spans.n; ++i) {
    if (rules[spans.point[i]]) judge('span', i, spans, spans.start[i]);
  }
  for (let i = 0; i < instants.n; ++i) {
    if (rules[instants.point[i]]) judge('instant', i, instants, instants.t[i]);
  }
  for (const w of findLostWakeUps(trace)) add(w);
  const told = new Set(problems.filter((p) => p.kind === kRules['hca.cqe'].kind).map((p) => p.msg));
  for (const m of failures(trace)) if (m.kind !== kFailed || !told.has(m.msg)) add(m);
  for (const [kind, n] of count) {
    if (n <= kMostPerKind) continue;
    problems.push({
      severity: 'info',
      kind,
      text: `${n - kMostPerKind} more of them are not listed`,
      t: trace.t1,
      lane: -1,
      msg: 0,
      at: null,
    });
  }
  return problems.sort((a, b) => a.t - b.t);
}

/** Calls of libibverbs that return an error; one that waits may well return for lack of an event. */
function verbsRule(p: Point): Rule | undefined {
  if (p.cat !== 'verbs' || !p.args.includes('errno') || p.name.startsWith('verbs.get_')) return undefined;
  return { severity: 'warning', kind: 'verbs call failed', when: (arg) => arg('errno') !== 0 };
}

/** The file's own mark goes before the rules, which still name the kind; a rule counts alone where the file does not mark the point. */
function ruleOf(p: Point): Rule | undefined {
  if (p.kind !== 'span' && p.kind !== 'instant') return undefined;
  const rule = kRules[p.name] ?? verbsRule(p);
  const kind = rule?.kind ?? p.name.slice(p.name.indexOf('.') + 1).replace(/_/g, ' ');
  if (p.mark !== null) {
    const flag = p.args[p.markIf];
    return { severity: p.mark, kind, ...(flag !== undefined ? { when: (arg) => arg(flag) !== 0 } : {}) };
  }
  return rule ?? (kSuspicious.test(p.name) ? { severity: 'warning', kind } : undefined);
}

function argumentReader(point: Point, args: Float64Array[], i: number): (name: string) => number {
  return (name) => {
    const a = point.args.indexOf(name);
    return a < 0 ? 0 : args[a][i];
  };
}

function describe(point: Point, arg: (name: string) => number): string {
  if (point.name === 'hca.cqe') return `CQ ${arg('cqn')}, QP ${arg('qpn')}: ${syndromeName(arg('syndrome'))}`;
  const call = point.cat === 'verbs' ? `ibv_${point.name.slice(point.name.indexOf('.') + 1)}: ` : '';
  const numbers = point.args
    .map((a) => {
      const v = arg(a);
      const name = valueName(point.name, a, v) ?? (a === 'syndrome' ? aethName(v) : undefined);
      return name === undefined ? `${a} ${v}` : /^[\d.]/.test(name) ? `${a} ${v} (${name})` : `${a} ${name}`;
    })
    .join(', ');
  return call + numbers;
}

const kFailed = 'message failed';

function failureText(id: number, status: number, failed: boolean): string {
  if (status === kLost) return `WR ${id} got lost: an unreliable receiver dropped it, or its CQE found no room`;
  if (failed) return `WR ${id} ended with ${wcStatusName(status)}`;
  return status === kUnderWay ? `WR ${id} was under way when the run ended` : `WR ${id} has no end in this trace`;
}

/** Messages that never finished or of which the file says that they failed, in one entry each. */
function failures(trace: Trace): Problem[] {
  const m = trace.messages;
  const out: Problem[] = [];
  for (let r = 0; r < m.n; ++r) {
    if (m.status[r] === Status.ok) continue;
    const failed = m.status[r] === Status.error;
    if (failed && m.wcStatus[r] === 0) continue;
    const id = m.id[r];
    const first = trace.spansOf.offset[id];
    const index = first < trace.spansOf.offset[id + 1] ? trace.spansOf.list[first] : -1;
    out.push({
      // A message without a record may well have ended outside of what the trace holds.
      severity: failed ? 'error' : m.wcStatus[r] === kUnderWay ? 'warning' : 'info',
      kind: m.wcStatus[r] === kLost ? 'message lost' : failed ? kFailed : 'message not delivered',
      text: failureText(id, m.wcStatus[r], failed),
      t: m.t[r],
      lane: index >= 0 ? trace.spans.lane[index] : -1,
      msg: id,
      at: index >= 0 ? { record: 'span', index } : null,
    });
  }
  return out;
}
