// SPDX-License-Identifier: Apache-2.0
// Reader of the native format rdmasim-cols/1 (docs/trace_format.md). A line that cannot be read is reported and skipped; the
// lines around it count. The end record's totals are checked against what was read.
import type { Builder } from '../model/builder';
import type { Columns } from '../model/columns';
import type { BytesKind, LaneKind, Mark, RecordKind } from '../model/types';
import { looksLikeBlock, scanBlock } from './block';
import type { LineSink } from './lines';

export const kNativeFormat = 'rdmasim-cols/1';

type Json = Record<string, unknown>;
const kLaneKinds = ['exclusive', 'pipelined', 'counter', 'state', 'instant'];
const kRecordKinds = ['span', 'instant', 'counter', 'state', 'packet'];
const kMarks = ['warning', 'error'];
const kBytesKinds = ['frame', 'wqe', 'rwqe', 'cqe', 'eqe', 'tlp'];
const kMost = 1 << 20;
/** Times beyond this many picoseconds, 2.5 hours, are not exact in a double: no run has them. */
const kMostTime = Number.MAX_SAFE_INTEGER;

export class NativeParser implements LineSink {
  private readonly text = new TextDecoder();
  private readonly encoder = new TextEncoder();
  private unknown = new Set<string>();

  constructor(private readonly out: Builder) {}

  line(buffer: Uint8Array, from: number, to: number, number: number, offset: number): void {
    if (to === from) return;
    try {
      const block = looksLikeBlock(buffer, from, to) ? scanBlock(buffer, from, to, this.out.bytes) : null;
      this.value(block ?? this.parse(buffer.subarray(from, to)), number);
    } catch (e) {
      if (number === 1) throw e;
      this.out.say('error', `line ${number} (byte ${offset}): ${(e as Error).message}; skipped`);
    }
  }

  rest(buffer: Uint8Array, number: number, offset: number): void {
    let value: Json;
    try {
      value = this.parse(buffer);
    } catch {
      if (number === 1) throw new Error(`the file is cut short in its header, at byte ${offset + buffer.length}`);
      this.out.say('warning', `the file is cut short in line ${number}, at byte ${offset + buffer.length}; that line is lost`);
      return;
    }
    this.value(value, number);
  }

  finish(): void {
    if (!this.out.complete) this.out.say('warning', 'the file has no end record: it was cut short, or the run did not end');
  }

  private parse(bytes: Uint8Array): Json {
    let line = this.text.decode(bytes);
    // Negative numbers travel as 64-bit unsigned ones; as doubles they would all look the same.
    if (line.includes('1844674407')) {
      line = line.replace(/\b1844674407\d{10}\b/g, (s) => String(BigInt.asIntN(64, BigInt(s))));
    }
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (e) {
      throw new Error(`not valid JSON (${(e as Error).message.slice(0, 120)})`);
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('not a JSON object');
    return value as Json;
  }

  private value(v: Json, number: number): void {
    if (number === 1) return this.head(v);
    switch (v.k) {
      case 'point':
        return this.point(v);
      case 'lane':
        return this.lane(v);
      case 'span':
        return this.spans(v);
      case 'instant':
        return this.instants(v);
      case 'counter':
        return this.values(v, this.out.counters);
      case 'state':
        return this.values(v, this.out.states);
      case 'packet':
        return this.packets(v);
      case 'msg':
        return this.messages(v);
      case 'end':
        return this.end(v);
      default: {
        const kind = String(v.k);
        if (this.unknown.has(kind)) return;
        this.unknown.add(kind);
        this.out.say('note', `records of kind “${kind.slice(0, 40)}” (line ${number}) are not known to this viewer`);
      }
    }
  }

  private head(v: Json): void {
    if (v.format !== kNativeFormat) {
      throw new Error(`format “${String(v.format).slice(0, 60)}” is not ${kNativeFormat}, which this viewer reads`);
    }
    const h = this.out.header;
    h.format = kNativeFormat;
    h.version = String(v.version ?? '');
    h.scenario = String(v.scenario ?? '');
    h.seed = Number(v.seed ?? 0);
    h.hosts = strings(v.hosts);
    h.stages = strings(v.stages);
    h.config = v.config ?? null;
    if (Array.isArray(v.lanes)) for (const l of v.lanes) this.lane(l as Json);
  }

  private lane(v: Json): void {
    const id = integer(v.id, 'lane id');
    const kind = kLaneKinds.includes(String(v.kind)) ? (v.kind as LaneKind) : 'pipelined';
    this.out.lane({ id, host: integer(v.host, 'host'), path: String(v.path ?? `lane ${id}`), kind, states: strings(v.states) });
  }

  private point(v: Json): void {
    const kind = kRecordKinds.includes(String(v.kind)) ? (v.kind as RecordKind) : 'span';
    const bytes = kBytesKinds.includes(String(v.bytes)) ? (v.bytes as BytesKind) : kind === 'packet' ? 'frame' : null;
    const mark = kMarks.includes(String(v.mark)) ? (v.mark as Mark) : null;
    const markIf = v.mark_if === undefined ? -1 : integer(v.mark_if, 'mark_if');
    this.out.point(integer(v.id, 'point id'), String(v.name ?? ''), String(v.cat ?? ''), kind, strings(v.args), {
      bytes,
      mark,
      markIf,
    });
  }

  private spans(v: Json): void {
    const n = count(v);
    const c = this.out.spans;
    const at = begin(c, n);
    times(v, 'ts', n, c.col.start as Float64Array, at);
    small(v, 'dur', n, c.col.dur, at, kMostTime);
    small(v, 'wait', n, c.col.wait, at, kMostTime);
    this.common(v, n, c, at);
    const shift = column(v, 'id', n);
    const up = column(v, 'up', n);
    const id0 = integer(v.id0, 'id0');
    for (let i = 0; i < n; ++i) {
      const id = this.out.checkId(id0 + i + (shift ? shift[i] : 0), 'span id');
      c.col.id[at + i] = id;
      c.col.parent[at + i] = up && up[i] !== 0 ? Math.max(0, id - up[i]) : 0;
    }
    args(v, n, c, at);
    this.raw(v, n, c.col.bytes, at);
    c.n = at + n;
  }

  private instants(v: Json): void {
    const n = count(v);
    const c = this.out.instants;
    const at = begin(c, n);
    times(v, 't', n, c.col.t as Float64Array, at);
    this.common(v, n, c, at);
    plain(v, 'parent', n, c.col.parent, at);
    args(v, n, c, at);
    this.raw(v, n, c.col.bytes, at);
    c.n = at + n;
  }

  private values(v: Json, c: Builder['counters']): void {
    const n = count(v);
    const at = begin(c, n);
    times(v, 't', n, c.col.t as Float64Array, at);
    small(v, 'lane', n, c.col.lane, at, kMost);
    small(v, 'point', n, c.col.point, at, 0xffff);
    plain(v, 'v', n, c.col.v, at);
    c.n = at + n;
  }

  private packets(v: Json): void {
    const n = count(v);
    const c = this.out.packets;
    const at = begin(c, n);
    times(v, 't', n, c.col.t as Float64Array, at);
    this.common(v, n, c, at);
    plain(v, 'len', n, c.col.len, at);
    plain(v, 'tx', n, c.col.tx, at);
    plain(v, 'frame', n, c.col.frame, at);
    this.raw(v, n, c.col.bytes, at);
    c.n = at + n;
  }

  private messages(v: Json): void {
    const n = count(v);
    const ids = column(v, 'id', n);
    const t = new Float64Array(n);
    times(v, 't', n, t, 0);
    const [total, flow, op, bytes] = ['total', 'flow', 'op', 'bytes'].map((k) => column(v, k, n));
    const stages = this.out.header.stages.map((s) => column(v, s, n));
    const [wrId, qpn, host, status] = ['wr_id', 'qpn', 'host', 'status'].map((k) => column(v, k, n));
    for (let i = 0; i < n; ++i) {
      this.out.messages.push({
        id: this.out.checkId(ids ? ids[i] : 0, 'message id'),
        t: t[i],
        total: total?.[i] ?? 0,
        flow: flow?.[i] ?? 0,
        op: op?.[i] ?? 0,
        bytes: bytes?.[i] ?? 0,
        stages: stages.map((s) => s?.[i] ?? 0),
        wrId: wrId?.[i],
        qpn: qpn?.[i],
        host: host?.[i],
        status: status?.[i],
      });
    }
  }

  private end(v: Json): void {
    this.out.complete = true;
    const have: [string, number][] = [
      ['spans', this.out.spans.n],
      ['instants', this.out.instants.n],
      ['counters', this.out.counters.n],
      ['states', this.out.states.n],
      ['packets', this.out.packets.n],
      ['messages', this.out.messages.length],
    ];
    for (const [what, n] of have) {
      if (typeof v[what] === 'number' && v[what] !== n) {
        this.out.say('warning', `the end record speaks of ${String(v[what])} ${what}, ${n} could be read`);
      }
    }
  }

  /** lane, point and msg of records that have all three. */
  private common(v: Json, n: number, c: { col: { lane: Numbers; point: Numbers; msg: Numbers } }, at: number): void {
    small(v, 'lane', n, c.col.lane, at, kMost);
    small(v, 'point', n, c.col.point, at, 0xffff);
    small(v, 'msg', n, c.col.msg, at, 1 << 27);
  }

  private raw(v: Json, n: number, to: Numbers, at: number): void {
    const c = v.bytes;
    if (c === undefined) return void to.fill(0, at, at + n);
    if (c instanceof Uint32Array) return void to.set(c, at);
    if (!Array.isArray(c) || c.length !== n) throw new Error(`column “bytes” does not have ${n} values`);
    for (let i = 0; i < n; ++i) {
      const text = this.encoder.encode(String(c[i]));
      const position = this.out.bytes.addHex(text, 0, text.length);
      if (position < 0)
        throw new Error(`column “bytes” holds ${JSON.stringify(c[i]).slice(0, 40)}; hexadecimal text is expected`);
      to[at + i] = position;
    }
  }
}

type Numbers = Float64Array | Uint32Array | Uint16Array | Uint8Array;

function begin<K extends string>(c: Columns<K>, n: number): number {
  c.reserve(n);
  return c.n;
}
function strings(v: unknown): string[] {
  return Array.isArray(v) ? v.map(String) : [];
}
function integer(v: unknown, what: string): number {
  if (typeof v !== 'number' || !Number.isInteger(v)) throw new Error(`${what} is not an integer`);
  return v;
}
function count(v: Json): number {
  const n = integer(v.n, 'n');
  if (n < 0 || n > kMost) throw new Error(`a block of ${n} records`);
  return n;
}
function column(v: Json, key: string, n: number): ArrayLike<number> | null {
  const c = v[key];
  if (c === undefined) return null;
  if (!(Array.isArray(c) || c instanceof Float64Array)) throw new Error(`column “${key}” is no list of ${n} numbers`);
  if (c.length !== n) throw new Error(`column “${key}” has ${c.length} values, ${n} are expected`);
  if (c instanceof Float64Array) return c;
  const bad = c.findIndex((x) => typeof x !== 'number');
  if (bad >= 0) throw new Error(`column “${key}” holds ${JSON.stringify(c[bad])?.slice(0, 40)}; a number is expected`);
  return c as number[];
}
function plain(v: Json, key: string, n: number, to: Numbers, at: number): void {
  const c = column(v, key, n);
  if (c) to.set(c, at);
  else to.fill(0, at, at + n);
}
function small(v: Json, key: string, n: number, to: Numbers, at: number, limit: number): void {
  const c = column(v, key, n);
  if (!c) {
    to.fill(0, at, at + n);
    return;
  }
  for (let i = 0; i < n; ++i) {
    const x = c[i];
    if (!(x >= 0 && x <= limit)) throw new Error(`column “${key}” holds ${String(x)}`);
    to[at + i] = x;
  }
}
function times(v: Json, key: string, n: number, to: Float64Array, at: number): void {
  const c = column(v, key, n);
  let t = typeof v.t0 === 'number' ? v.t0 : NaN;
  if (Number.isNaN(t)) throw new Error('t0 is missing');
  if (Math.abs(t) > kMostTime) throw new Error(`t0 is ${t}; a time in picoseconds is expected`);
  for (let i = 0; i < n; ++i) {
    if (c) t += c[i];
    to[at + i] = t;
  }
  if (!(Math.abs(t) <= kMostTime)) throw new Error(`column “${key}” leads to the time ${t}`);
}
function args<K extends string>(v: Json, n: number, c: Columns<K>, at: number): void {
  for (const k of ['a0', 'a1', 'a2', 'a3'] as K[]) plain(v, k, n, c.col[k], at);
}
