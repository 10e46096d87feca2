// SPDX-License-Identifier: Apache-2.0
// The search language: words joined by "and". `key:value` compares a field or a point's argument (qpn, psn, opcode, syndrome …, msg
// or wr, wr_id, flow, bytes, latency, status, lane, point, host). The value is a number, 0x…, a time, a name, a range a..b or a
// comparison >x, <x, >=x, <=x. A word without a key is a piece of a lane's or point's name, or a message's number. A message matches
// a word too when one of its spans does.
import { kWrOpcode, valueName, wcStatusName } from '../decode/values';
import { parseTime } from './time';
import type { Csr, Point, Trace } from './types';
import { Status } from './types';

type Test = (value: number) => boolean;
interface Term {
  key: string;
  text: string;
  /** Null when the value is no number. */
  test: Test | null;
}
export interface Query {
  terms: Term[];
  errors: string[];
}

const kTimeKeys = new Set(['latency', 'total', 't', 'dur', 'wait']);
const kMessageKeys = new Set(['msg', 'wr_id', 'flow', 'latency', 'total', 'status']);

export function parseQuery(text: string): Query {
  const terms: Term[] = [];
  const errors: string[] = [];
  for (const word of text.trim().split(/\s+/)) {
    if (word === '') continue;
    const colon = word.indexOf(':');
    const key = colon > 0 ? word.slice(0, colon).toLowerCase() : '';
    const value = colon > 0 ? word.slice(colon + 1) : word;
    if (value === '') {
      errors.push(`“${word}” has no value`);
      continue;
    }
    const test = numberTest(value, kTimeKeys.has(key));
    if (!test && /^(>=?|<=?)/.test(value)) errors.push(`“${value}” is no comparison`);
    terms.push({ key: key === 'message' || key === 'wr' ? 'msg' : key, text: value.toLowerCase(), test });
  }
  return { terms, errors };
}

function numberTest(value: string, time: boolean): Test | null {
  const number = (s: string) => (time ? parseTime(s) : /^(0x[0-9a-f]+|-?\d+(\.\d+)?)$/i.test(s) ? Number(s) : NaN);
  const range = /^(.+?)\.\.(.+)$/.exec(value);
  if (range) {
    const lo = number(range[1]);
    const hi = number(range[2]);
    return Number.isNaN(lo) || Number.isNaN(hi) ? null : (v) => v >= lo && v <= hi;
  }
  const op = /^(>=|<=|>|<)(.+)$/.exec(value);
  if (op) {
    const x = number(op[2]);
    if (Number.isNaN(x)) return null;
    return { '>': (v: number) => v > x, '<': (v: number) => v < x, '>=': (v: number) => v >= x, '<=': (v: number) => v <= x }[
      op[1]
    ]!;
  }
  const x = number(value);
  return Number.isNaN(x) ? null : (v) => v === x;
}

/** Rows of the message table that match, ascending. */
export function matchMessages(trace: Trace, query: Query): Uint32Array {
  const m = trace.messages;
  const tests = query.terms.map((t) => messageTest(trace, t));
  const out = new Uint32Array(m.n);
  let n = 0;
  for (let r = 0; r < m.n; ++r) if (tests.every((t) => t(r))) out[n++] = r;
  return out.slice(0, n);
}

export function opName(op: number): string {
  return op === 255 ? '–' : (kWrOpcode[op] ?? `op ${op}`);
}
/** The 64 bits of a wr_id, which travel as a signed number; beyond 2^53 they are not exact. */
export function wrIdText(id: number): string {
  if (Number.isNaN(id)) return '–';
  return `${Math.abs(id) > Number.MAX_SAFE_INTEGER ? '≈ ' : ''}${BigInt.asUintN(64, BigInt(id))}`;
}
export function statusText(trace: Trace, r: number): string {
  const m = trace.messages;
  switch (m.status[r]) {
    case Status.ok:
      return 'SUCCESS';
    case Status.error:
      return wcStatusName(m.wcStatus[r]);
    default:
      return 'not finished';
  }
}

function messageTest(trace: Trace, term: Term): (r: number) => boolean {
  const m = trace.messages;
  const { test } = term;
  const number = (column: ArrayLike<number>) => (test ? (r: number) => test(column[r]) : () => false);
  const text = (of: (r: number) => string) => (r: number) => of(r).toLowerCase().includes(term.text);
  switch (term.key) {
    case 'msg':
      return number(m.id);
    case 'wr_id':
      return m.wrId ? number(m.wrId) : () => false;
    case 'qpn':
      return either(number(m.qpn), anyRecord(trace, term));
    case 'flow':
      return number(m.flow);
    case 'bytes':
      return number(m.bytes);
    case 'latency':
    case 'total':
      return number(m.total);
    case 't':
      return number(m.t);
    case 'opcode':
    case 'op':
      return either(test ? number(m.op) : text((r) => opName(m.op[r])), anyRecord(trace, term));
    case 'status':
      if (test) return (r) => m.status[r] !== Status.unfinished && test(m.wcStatus[r]);
      if (term.text === 'error') return (r) => m.status[r] !== Status.ok;
      return term.text === 'ok' ? (r) => m.status[r] === Status.ok : text((r) => statusText(trace, r));
    case 'host':
      return test ? number(m.host) : text((r) => trace.header.hosts[m.host[r]] ?? '');
    case '':
      if (test) return (r) => test(m.id[r]);
      return either(
        text((r) => `${opName(m.op[r])} ${statusText(trace, r)} ${trace.header.hosts[m.host[r]] ?? ''}`),
        anyRecord(trace, term),
      );
    default:
      return anyRecord(trace, term);
  }
}

function either(a: (r: number) => boolean, b: (r: number) => boolean): (r: number) => boolean {
  return (r) => a(r) || b(r);
}

/** Whether any span or instant of the message matches: an argument of a point, a lane, a point. */
function anyRecord(trace: Trace, term: Term): (r: number) => boolean {
  const { id } = trace.messages;
  const any =
    ({ offset, list }: Csr, test: (i: number) => boolean) =>
    (r: number) => {
      for (let k = offset[id[r]]; k < offset[id[r] + 1]; ++k) if (test(list[k])) return true;
      return false;
    };
  const span = any(trace.spansOf, recordTest(trace, ofSpans(trace), term));
  const instant = any(trace.instantsOf, recordTest(trace, ofInstants(trace), term));
  return either(span, instant);
}

/** What the search asks of a record: spans and instants have it. */
interface Records {
  n: number;
  lane: Uint32Array;
  point: Uint16Array;
  msg: Uint32Array;
  args: Float64Array[];
  time: Float64Array;
  dur?: Float64Array;
  wait?: Float64Array;
  id?: Uint32Array;
}
const ofSpans = (trace: Trace): Records => ({ ...trace.spans, time: trace.spans.start });
const ofInstants = (trace: Trace): Records => ({ ...trace.instants, time: trace.instants.t });

/** Span indices that match, ascending, which is by row and time. */
export function matchSpans(trace: Trace, query: Query): Uint32Array {
  return match(trace, ofSpans(trace), query);
}
/** Instants that match, ascending, which is by lane and time. */
export function matchInstants(trace: Trace, query: Query): Uint32Array {
  return match(trace, ofInstants(trace), query);
}

function match(trace: Trace, records: Records, query: Query): Uint32Array {
  const tests = query.terms.map((t) => recordTest(trace, records, t));
  const out = new Uint32Array(records.n);
  let found = 0;
  for (let i = 0; i < records.n; ++i) {
    let all = true;
    for (const t of tests) {
      if (!t(i)) {
        all = false;
        break;
      }
    }
    if (all) out[found++] = i;
  }
  return out.slice(0, found);
}

function recordTest(trace: Trace, s: Records, term: Term): (i: number) => boolean {
  const { test } = term;
  const number = (column: ArrayLike<number> | undefined) => (test && column ? (i: number) => test(column[i]) : () => false);
  if (kMessageKeys.has(term.key)) {
    if (term.key === 'msg') return number(s.msg);
    const message = messageTest(trace, term);
    return (i) => s.msg[i] !== 0 && trace.messageRow[s.msg[i]] !== 0xffffffff && message(trace.messageRow[s.msg[i]]);
  }
  switch (term.key) {
    case 't':
      return number(s.time);
    case 'dur':
      return number(s.dur);
    case 'wait':
      return number(s.wait);
    case 'span':
      return number(s.id);
    case 'lane':
      return byFlag(
        s.lane,
        trace.lanes.map((l) => l.path.toLowerCase().includes(term.text)),
      );
    case 'point':
      return byFlag(
        s.point,
        trace.points.map((p) => p.name.toLowerCase().includes(term.text)),
      );
    case 'host':
      return byFlag(
        s.lane,
        trace.lanes.map((l) => (test ? test(l.host) : (trace.header.hosts[l.host] ?? 'fabric').includes(term.text))),
      );
    case '': {
      const lanes = trace.lanes.map((l) => l.path.toLowerCase().includes(term.text));
      const points = trace.points.map((p) => p.name.toLowerCase().includes(term.text));
      return (i) => lanes[s.lane[i]] || points[s.point[i]] || (test !== null && s.msg[i] !== 0 && test(s.msg[i]));
    }
    default:
      return argumentTest(trace, s, term);
  }
}

function byFlag(column: ArrayLike<number>, flags: boolean[]): (i: number) => boolean {
  return (i) => flags[column[i]];
}

/** The point's argument of that name: by number, or by the name of its value. */
function argumentTest(trace: Trace, s: Records, term: Term): (i: number) => boolean {
  const at = trace.points.map((p) => p.args.indexOf(term.key));
  const { test } = term;
  if (test) return (i) => at[s.point[i]] >= 0 && test(s.args[at[s.point[i]]][i]);
  const known = trace.points.map(() => new Map<number, boolean>());
  return (i) => {
    const p = s.point[i];
    if (at[p] < 0) return false;
    const v = s.args[at[p]][i];
    let hit = known[p].get(v);
    if (hit === undefined) {
      hit = nameOf(trace.points[p], term.key, v).includes(term.text);
      known[p].set(v, hit);
    }
    return hit;
  };
}
function nameOf(point: Point, key: string, value: number): string {
  return (valueName(point.name, key, value) ?? '').toLowerCase();
}
