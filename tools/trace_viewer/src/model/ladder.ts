// SPDX-License-Identifier: Apache-2.0
// Packets as a ladder between hosts: every packet on a cable with its PSN, whether it arrived and whether it was sent before. Packets
// that talk to each other, which messages join, are a conversation: the two directions of a pair of queue pairs.
import { aethName, bthOpcodeName } from '../decode/values';
import { decodeBytes } from '../decode/index';
import { bytesAt } from './byte_store';
import { lowerBound } from './sort';
import type { Trace } from './types';

export interface Rung {
  /** The span on the cable. */
  span: number;
  /** First bit leaves, last bit arrives. */
  t: number;
  arrival: number;
  from: string;
  to: string;
  qpn: number;
  psn: number;
  opcode: number;
  bytes: number;
  msg: number;
  /** A request with this PSN was sent before. */
  repeated: boolean;
  /** What became of it, '' when it arrived as it was. */
  fate: string;
}

export interface Conversation {
  /** "host0 QP 257 ⇄ host1 QP 256" */
  name: string;
  /** From left to right. */
  nodes: string[];
  rungs: Rung[];
}

/** Points that tell of a packet's fate, at the time of its first bit. */
const kFates: Record<string, string> = {
  'fabric.drop': 'dropped',
  'fabric.corrupt': 'corrupted',
  'fabric.duplicate': 'duplicated',
  'fabric.delay': 'delayed',
  'fabric.reorder': 'reordered',
};

const made = new WeakMap<Trace, Conversation[]>();

/** Conversations with their packets by time, the one with most packets first. */
export function conversations(trace: Trace): Conversation[] {
  let all = made.get(trace);
  if (!all) made.set(trace, (all = build(trace)));
  return all;
}

function build(trace: Trace): Conversation[] {
  const rungs = rungsOf(trace);
  rungs.sort((a, b) => a.t - b.t || a.span - b.span);
  markRepeated(rungs);
  markFates(trace, rungs);
  const root = joined(rungs);
  const groups = new Map<string, Rung[]>();
  for (const r of rungs) {
    const key = root(endOf(r));
    const list = groups.get(key);
    if (list) list.push(r);
    else groups.set(key, [r]);
  }
  const out = [...groups.values()].map((list) => ({ name: nameOf(list), nodes: nodesOf(trace, list), rungs: list }));
  return out.sort((a, b) => b.rungs.length - a.rungs.length || a.rungs[0].t - b.rungs[0].t);
}

function rungsOf(trace: Trace): Rung[] {
  const { spans } = trace;
  const ends = trace.lanes.map((l) => (l.host < 0 ? /([^.]+?)_to_([^.]+)$/.exec(l.path) : null));
  const args = trace.points.map((p) => ['qpn', 'psn', 'opcode', 'bytes'].map((a) => p.args.indexOf(a)));
  const out: Rung[] = [];
  for (let r = 0; r < trace.rows.n; ++r) {
    const end = ends[trace.rows.lane[r]];
    if (!end) continue;
    for (let i = trace.rows.offset[r]; i < trace.rows.offset[r + 1]; ++i) {
      const [qpn, psn, opcode, bytes] = args[spans.point[i]].map((a) => (a < 0 ? NaN : spans.args[a][i]));
      if (Number.isNaN(qpn + psn + opcode)) continue;
      const t = spans.start[i];
      const place = { span: i, t, arrival: t + spans.dur[i], from: end[1], to: end[2] };
      out.push({ ...place, qpn, psn, opcode, bytes, msg: spans.msg[i], repeated: false, fate: '' });
    }
  }
  return out;
}

/** Whether a BTH opcode is that of an acknowledgement, a READ response or a congestion notification. */
export function isResponse(opcode: number): boolean {
  const operation = opcode & 0x1f;
  return opcode === 0x81 || (operation >= 0x0d && operation <= 0x12);
}

function endOf(r: Rung): string {
  return `${r.to} ${r.qpn}`;
}

function markRepeated(rungs: Rung[]): void {
  const seen = new Map<string, Set<number>>();
  for (const r of rungs) {
    if (isResponse(r.opcode)) continue;
    const key = `${r.from} ${endOf(r)}`;
    let psns = seen.get(key);
    if (!psns) seen.set(key, (psns = new Set()));
    r.repeated = psns.has(r.psn);
    psns.add(r.psn);
  }
}

function markFates(trace: Trace, rungs: Rung[]): void {
  const { instants } = trace;
  const times = rungs.map((r) => r.t);
  for (let i = 0; i < instants.n; ++i) {
    const point = trace.points[instants.point[i]];
    const fate = kFates[point.name];
    if (!fate) continue;
    const [qpn, psn] = ['qpn', 'psn'].map((a) => instants.args[point.args.indexOf(a)]?.[i]);
    const path = trace.lanes[instants.lane[i]].path;
    for (let k = lowerBound(times, instants.t[i], 0, times.length); k < rungs.length && times[k] === instants.t[i]; ++k) {
      const r = rungs[k];
      if (r.qpn === qpn && r.psn === psn && path.includes(`${r.from}_to_${r.to}`)) r.fate = fate;
    }
  }
}

/** Joins ends that exchange the packets of a message; returns the name of an end's conversation. */
function joined(rungs: Rung[]): (end: string) => string {
  const parent = new Map<string, string>();
  const root = (end: string): string => {
    let at = end;
    for (let up = parent.get(at); up !== undefined; up = parent.get(at)) at = up;
    return at;
  };
  const first = new Map<number, string>();
  for (const r of rungs) {
    if (r.msg === 0) continue;
    const end = root(endOf(r));
    const other = first.get(r.msg);
    if (other === undefined) first.set(r.msg, end);
    else if (root(other) !== end) parent.set(end, root(other));
  }
  joinReplies(rungs, root, parent);
  return root;
}

/** A NAK belongs to no message: its end joins that of the last request before it with the same PSN. */
function joinReplies(rungs: Rung[], root: (end: string) => string, parent: Map<string, string>): void {
  const alone = new Set(rungs.filter((r) => isResponse(r.opcode)).map(endOf));
  for (const r of rungs) if (!isResponse(r.opcode) || r.msg > 0) alone.delete(endOf(r));
  const requests = new Map<string, string>();
  for (const r of rungs) {
    if (!isResponse(r.opcode)) requests.set(`${r.from} ${r.to} ${r.psn}`, endOf(r));
    else if (alone.has(endOf(r))) {
      const request = requests.get(`${r.to} ${r.from} ${r.psn}`);
      if (request !== undefined && root(request) !== root(endOf(r))) parent.set(root(endOf(r)), root(request));
    }
  }
}

function nameOf(rungs: Rung[]): string {
  const ends = [...new Set(rungs.map((r) => `${r.to} QP ${r.qpn}`))].sort();
  return ends.length <= 4 ? ends.join(' ⇄ ') : `${ends.slice(0, 3).join(', ')} and ${ends.length - 3} more`;
}

/** The first host, what lies between, and its peers. */
function nodesOf(trace: Trace, rungs: Rung[]): string[] {
  const { hosts } = trace.header;
  const rank = (n: string) => {
    const at = hosts.indexOf(n);
    return at < 0 ? 0.5 : at;
  };
  return [...new Set(rungs.flatMap((r) => [r.from, r.to]))].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

/** The record of the sent frame that a rung stands for; -1 if the trace has none. */
export function packetOf(trace: Trace, r: Rung): number {
  const { packets, packetOffset } = trace;
  const lane = trace.spans.lane[r.span];
  const end = packetOffset[lane + 1];
  for (let i = lowerBound(packets.t, r.t, packetOffset[lane], end); i < end && packets.t[i] === r.t; ++i) {
    if (packets.tx[i] !== 0) return i;
  }
  return -1;
}

/** "SEND_ONLY", or what an acknowledgement says: "RNR NAK, timer code 12". */
export function rungText(trace: Trace, r: Rung): string {
  const name = bthOpcodeName(r.opcode);
  const i = isResponse(r.opcode) ? packetOf(trace, r) : -1;
  const bytes = i >= 0 ? bytesAt(trace.pieces, trace.packets.bytes[i]) : null;
  const field = bytes && decodeBytes('frame', bytes, trace.packets.len[i]).fields.find((f) => f.group === 'AETH');
  if (!field || !bytes) return name;
  const says = aethName(bytes[field.at]);
  return says === 'ACK' || says.startsWith('ACK,') ? name : `${name}: ${says}`;
}
