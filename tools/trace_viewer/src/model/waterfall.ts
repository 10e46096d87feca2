// SPDX-License-Identifier: Apache-2.0
// The waterfall of a message. Stages come from the message's record and sum to its total exactly, in picoseconds; a difference
// would be shown as a stage of its own, never hidden. Steps come from spans: wait and service of each, one line per lane and point.
import type { Lifeline } from './lifeline';
import type { Trace } from './types';
import { Status } from './types';

export interface StageBar {
  stage: string;
  /** From the post, in the order of the header's stages. */
  from: number;
  ps: number;
}

export interface Stages {
  total: number;
  bars: StageBar[];
  sum: number;
}

/** Stages of message row r; null when the file has none of it. Stages of no time are left out unless `all`. */
export function stagesOf(trace: Trace, r: number, all = false): Stages | null {
  const m = trace.messages;
  if (m.stages.length === 0) return null;
  const bars: StageBar[] = [];
  let at = 0;
  m.stages.forEach((column, s) => {
    const ps = column[r];
    if (ps !== 0 || all) bars.push({ stage: trace.header.stages[s], from: at, ps });
    at += ps;
  });
  // A message that was not delivered has stages as far as it came.
  if (m.status[r] !== Status.ok) return bars.length > 0 ? { total: at, bars, sum: at } : null;
  const rest = m.total[r] - at;
  if (rest !== 0) {
    bars.push({ stage: '(unaccounted)', from: at, ps: rest });
    at += rest;
  }
  return { total: m.total[r], bars, sum: bars.reduce((a, b) => a + b.ps, 0) };
}

export interface Step {
  lane: number;
  point: number;
  /** Span indices by start. */
  spans: number[];
  /** Earliest start or enqueue, and latest end. */
  from: number;
  to: number;
  /** Time in which at least one span waits and none is in service, and in which at least one is in service. */
  wait: number;
  service: number;
}

/** One step per lane and point of a life-line, by its beginning. */
export function stepsOf(trace: Trace, line: Lifeline): Step[] {
  const { lane, point, start, dur, wait } = trace.spans;
  const steps = new Map<number, Step>();
  for (const i of line.spans) {
    const key = lane[i] * 65536 + point[i];
    let step = steps.get(key);
    if (!step) {
      step = { lane: lane[i], point: point[i], spans: [], from: Infinity, to: -Infinity, wait: 0, service: 0 };
      steps.set(key, step);
    }
    step.spans.push(i);
    step.from = Math.min(step.from, start[i] - wait[i]);
    step.to = Math.max(step.to, start[i] + dur[i]);
  }
  for (const step of steps.values()) {
    const served = step.spans.map((i): [number, number] => [start[i], start[i] + dur[i]]);
    const both = step.spans.map((i): [number, number] => [start[i] - wait[i], start[i] + dur[i]]);
    step.service = union(served);
    step.wait = union(both) - step.service;
  }
  return [...steps.values()].sort((a, b) => a.from - b.from || a.to - b.to);
}

/** Length of the union of intervals. */
export function union(intervals: [number, number][]): number {
  const sorted = intervals.slice().sort((a, b) => a[0] - b[0]);
  let length = 0;
  let end = -Infinity;
  for (const [a, z] of sorted) {
    if (z <= end) continue;
    length += z - Math.max(a, end);
    end = z;
  }
  return length;
}
