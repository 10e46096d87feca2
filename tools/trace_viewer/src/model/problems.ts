// SPDX-License-Identifier: Apache-2.0
// The list of what went wrong or was repeated: drops, NAKs, RNR, retransmissions, overruns, error completions, faults, and lost
// wake-ups. Derived from the names of points; points whose name speaks of an error are listed even if no rule knows them.
import { aethName, isErrorCompletion, syndromeName, valueName } from '../decode/values';
import { findLostWakeUps } from './wakeups';
import type { Point, Trace } from './types';
import { Status } from './types';

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
  'fabric.drop': { severity: 'error', kind: 'packet dropped' },
  'fabric.corrupt': { severity: 'error', kind: 'packet corrupted' },
  'fabric.duplicate': { severity: 'warning', kind: 'packet duplicated' },
  'fabric.delay': { severity: 'warning', kind: 'packet delayed' },
  'fabric.reorder': { severity: 'warning', kind: 'packet reordered' },
  'fabric.link': { severity: 'warning', kind: 'link down', when: (arg) => arg('up') === 0 },
  'hca.rx_drop': { severity: 'error', kind: 'packet dropped at the receiver' },
  'hca.nak': { severity: 'error', kind: 'NAK' },
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
  'kernel.uverbs_command': { severity: 'info', kind: 'system call failed', when: (arg) => arg('result') < 0 },
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
  const { spans, instants } = trace;
  for (let i = 0; i < spans.n; ++i) {
    const rule = rules[spans.point[i]];
    if (!rule) continue;
    const point = trace.points[spans.point[i]];
    const arg = argumentReader(point, spans.args, i);
    if (rule.when && !rule.when(arg, point)) continue;
    add({
      severity: rule.severity,
      kind: rule.kind,
      text: describe(point, arg),
      t: spans.start[i],
      lane: spans.lane[i],
      msg: spans.msg[i],
      at: { record: 'span', index: i },
    });
  }
  for (let i = 0; i < instants.n; ++i) {
    const rule = rules[instants.point[i]];
    if (!rule) continue;
    const point = trace.points[instants.point[i]];
    const arg = argumentReader(point, instants.args, i);
    if (rule.when && !rule.when(arg, point)) continue;
    add({
      severity: rule.severity,
      kind: rule.kind,
      text: describe(point, arg),
      t: instants.t[i],
      lane: instants.lane[i],
      msg: instants.msg[i],
      at: { record: 'instant', index: i },
    });
  }
  for (const w of findLostWakeUps(trace)) add(w);
  for (const m of unfinished(trace)) add(m);
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

function ruleOf(p: Point): Rule | undefined {
  const rule = kRules[p.name];
  if (rule || p.kind === 'counter' || p.kind === 'state' || p.kind === 'packet') return rule;
  return kSuspicious.test(p.name)
    ? { severity: 'warning', kind: p.name.slice(p.name.indexOf('.') + 1).replace(/_/g, ' ') }
    : undefined;
}

function argumentReader(point: Point, args: Float64Array[], i: number): (name: string) => number {
  return (name) => {
    const a = point.args.indexOf(name);
    return a < 0 ? 0 : args[a][i];
  };
}

function describe(point: Point, arg: (name: string) => number): string {
  if (point.name === 'hca.cqe') return `CQ ${arg('cqn')}, QP ${arg('qpn')}: ${syndromeName(arg('syndrome'))}`;
  return point.args
    .map((a) => {
      const v = arg(a);
      const name = valueName(point.name, a, v) ?? (a === 'syndrome' ? aethName(v) : undefined);
      return name !== undefined ? `${a} ${name}` : `${a} ${v}`;
    })
    .join(', ');
}

/** Messages that never finished, in one entry each. */
function unfinished(trace: Trace): Problem[] {
  const m = trace.messages;
  const out: Problem[] = [];
  for (let r = 0; r < m.n; ++r) {
    if (m.status[r] !== Status.unfinished) continue;
    const k = trace.spansOf.offset[m.id[r]];
    const index = trace.spansOf.list[k];
    out.push({
      severity: 'warning',
      kind: 'message not delivered',
      text: `message ${m.id[r]} has no end in this trace`,
      t: m.t[r],
      lane: trace.spans.lane[index],
      msg: m.id[r],
      at: { record: 'span', index },
    });
  }
  return out;
}
