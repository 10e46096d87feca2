// SPDX-License-Identifier: Apache-2.0
// The message table: finished messages from their records; and messages that spans name but that never finished (failed, or the
// trace ends before they do). QPN, PSN, poster and status come from the message's spans: the first span that has such an
// argument speaks for the message.
import type { Builder, RawMessage } from './builder';
import { isErrorCompletion, wcStatusOf } from '../decode/values';
import type { Csr, Messages, Point, Spans } from './types';
import { Status, kUnderWay } from './types';

interface ArgumentsOfPoint {
  qpn: number;
  psn: number;
  opcode: number;
  syndrome: number;
  bytes: number;
}

function argumentsOf(points: Point[]): ArgumentsOfPoint[] {
  return points.map((p) => ({
    qpn: p.args.indexOf('qpn'),
    psn: p.args.indexOf('psn'),
    opcode: p.args.indexOf('opcode'),
    syndrome: p.args.indexOf('syndrome'),
    bytes: p.args.indexOf('bytes'),
  }));
}

/** Messages by id; of records with one id the last counts. */
function distinct(raw: Builder): RawMessage[] {
  const sorted = raw.messages.slice().sort((a, b) => a.id - b.id);
  const last = sorted.filter((m, i) => i + 1 === sorted.length || sorted[i + 1].id !== m.id);
  const twice = sorted.length - last.length;
  if (twice > 0) raw.say('warning', `${twice} messages have an id that another message has too: the last record counts`);
  return last;
}

export function buildMessages(raw: Builder, spans: Spans, spansOf: Csr, most: number): Messages {
  const finished = distinct(raw);
  const known = new Uint8Array(most + 1);
  for (const m of finished) known[m.id] = 1;
  const extra: number[] = [];
  for (let id = 1; id <= most; ++id) if (!known[id] && spansOf.offset[id + 1] > spansOf.offset[id]) extra.push(id);
  const n = finished.length + extra.length;
  const stages = raw.header.stages.map(() => new Float64Array(n));
  const out: Messages = {
    n,
    id: new Uint32Array(n),
    t: new Float64Array(n),
    total: new Float64Array(n).fill(NaN),
    flow: new Uint32Array(n),
    wrId: null,
    op: new Uint8Array(n).fill(255),
    bytes: new Float64Array(n).fill(NaN),
    qpn: new Int32Array(n).fill(-1),
    psn: new Int32Array(n).fill(-1),
    host: new Int8Array(n).fill(-1),
    status: new Uint8Array(n),
    wcStatus: new Uint8Array(n),
    stages: finished.some((m) => m.stages) ? stages : [],
  };
  const wrId = finished.some((m) => m.wrId !== undefined) ? new Float64Array(n).fill(NaN) : null;
  finished.forEach((m, r) => {
    if (wrId && m.wrId !== undefined) wrId[r] = m.wrId;
    out.id[r] = m.id;
    out.t[r] = m.t;
    out.total[r] = m.total;
    out.flow[r] = m.flow;
    out.op[r] = m.op;
    out.bytes[r] = m.bytes;
    m.stages?.forEach((ps, s) => (stages[s][r] = ps ?? 0));
  });
  out.wrId = wrId;
  extra.forEach((id, i) => {
    out.id[finished.length + i] = id;
    out.status[finished.length + i] = Status.unfinished;
  });
  const args = argumentsOf(raw.points);
  for (let r = 0; r < n; ++r) describe(out, r, raw, spans, spansOf, args, r >= finished.length);
  finished.forEach((m, r) => {
    if (m.qpn !== undefined) out.qpn[r] = m.qpn;
    if (m.host !== undefined) out.host[r] = m.host;
    if (m.status !== undefined) {
      out.wcStatus[r] = m.status;
      if (m.status === kUnderWay) {
        out.status[r] = Status.unfinished;
        out.total[r] = NaN;
      } else if (m.status !== 0) out.status[r] = Status.error;
    }
  });
  return out;
}

function describe(
  out: Messages,
  r: number,
  raw: Builder,
  spans: Spans,
  spansOf: Csr,
  args: ArgumentsOfPoint[],
  unfinished: boolean,
): void {
  const id = out.id[r];
  let firstId = 0xffffffff;
  let qpnId = 0xffffffff;
  let psnId = 0xffffffff;
  let t = Infinity;
  for (let k = spansOf.offset[id]; k < spansOf.offset[id + 1]; ++k) {
    const i = spansOf.list[k];
    const p = args[spans.point[i]];
    const span = spans.id[i];
    const enqueued = spans.start[i] - spans.wait[i];
    const host = raw.lanes[spans.lane[i]].host;
    if (enqueued < t) t = enqueued;
    if (span < firstId && host >= 0) {
      firstId = span;
      out.host[r] = host;
    }
    if (p.qpn >= 0 && span < qpnId) {
      qpnId = span;
      out.qpn[r] = spans.args[p.qpn][i];
    }
    if (p.psn >= 0 && span < psnId) {
      psnId = span;
      out.psn[r] = spans.args[p.psn][i];
      if (unfinished && p.bytes >= 0) out.bytes[r] = spans.args[p.bytes][i];
    }
    if (p.syndrome >= 0 && p.opcode >= 0 && isErrorCompletion(raw.points[spans.point[i]].name, spans.args[p.opcode][i])) {
      out.status[r] = Status.error;
      out.wcStatus[r] = wcStatusOf(spans.args[p.syndrome][i]);
    }
  }
  if (unfinished) out.t[r] = t;
}
