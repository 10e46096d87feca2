// SPDX-License-Identifier: Apache-2.0
// Writes a synthetic trace of any size, for tests and the bench: two hosts, 29 spans a message from the post to the poll, counters,
// states, instants, packets. The same arguments give the same bytes, in both formats the same records.
//   node test/synthetic.mjs native|chrome SPANS FILE[.gz]
import { createWriteStream } from 'node:fs';
import { once } from 'node:events';
import { createGzip } from 'node:zlib';
import { pathToFileURL } from 'node:url';

const kBlock = 4096;
export const kSpansPerMessage = 29;
export const kStages = ['cpu_post', 'pcie_down', 'wqe_fetch', 'payload_dma', 'wire', 'receive', 'cqe_write', 'visible', 'poll'];

const kHostLanes = ['cpu0', 'cpu0.wc', 'pcie.root_complex', 'pcie.up', 'pcie.down', 'iommu', 'hca.requester', 'hca.translation', 'hca.dma', 'hca.tx',
  'hca.rx', 'hca.completions'];
const kPerHost = kHostLanes.length + 2; // a counter lane and a state lane more
export const kLanes = [0, 1].flatMap((host) => [
  ...kHostLanes.map((p) => ({ host, path: `host${host}.${p}`, kind: 'pipelined' })),
  { host, path: `host${host}.hca.sq`, kind: 'counter' },
  { host, path: `host${host}.hca.qp256`, kind: 'state', states: ['RESET', 'INIT', 'RTR', 'RTS', 'SQD', 'SQE', 'ERR'] },
]).concat([{ host: -1, path: 'fabric.host0_to_host1', kind: 'pipelined' }, { host: -1, path: 'fabric.host1_to_host0', kind: 'pipelined' }])
  .map((l, id) => ({ id, ...l }));

export const kPoints = [
  ['cpu.post', 'cpu', 'span', ['qpn', 'wqes']], ['cpu.wc_flush', 'cpu', 'span', ['bus', 'bytes', 'reason']],
  ['pcie.MWr', 'pcie', 'span', ['tag', 'length', 'address', 'wire_bytes']], ['hca.wqe', 'hca', 'span', ['qpn', 'wqe', 'opcode', 'bytes']],
  ['hca.translate', 'hca', 'span', ['key', 'va', 'bytes']], ['pcie.MRd', 'pcie', 'span', ['tag', 'length', 'address', 'wire_bytes']],
  ['pcie.dma_read', 'pcie', 'span', ['tag', 'length', 'address', 'status']], ['pcie.CplD', 'pcie', 'span', ['tag', 'length', 'address', 'wire_bytes']],
  ['hca.dma_read', 'hca', 'span', []], ['hca.tx', 'hca', 'span', ['qpn', 'psn', 'opcode', 'bytes']],
  ['fabric.wire', 'fabric', 'span', ['qpn', 'psn', 'opcode', 'bytes']], ['hca.rx', 'hca', 'span', ['qpn', 'psn', 'opcode', 'bytes']],
  ['pcie.dma_write', 'pcie', 'span', ['length', 'iova', 'phys']], ['hca.cqe', 'hca', 'span', ['cqn', 'qpn', 'opcode', 'syndrome']],
  ['cpu.poll', 'cpu', 'span', ['address']], ['hca.retransmit', 'hca', 'instant', ['qpn', 'psn', 'cause']],
  ['hca.sq_depth', 'hca', 'counter', ['wqes']], ['hca.state', 'hca', 'state', ['state']], ['fabric.frame', 'fabric', 'packet', []],
].map(([name, cat, kind, args], id) => ({ id, name, cat, kind, args }));
const P = Object.fromEntries(kPoints.map((p) => [p.name, p.id]));

/** A generator of numbers below n; the seed is fixed. */
function random() {
  let x = 0x2545f491;
  return (n) => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 0) % n;
  };
}

/** Yields {spans, message, instants, counters, packets} per message, about 1.05 us apart. Span ids count from 1. */
export function* messages(count) {
  const rnd = random();
  let id = 1;
  for (let m = 1; m <= count; ++m) {
    const side = m % 2;
    const lane = (host, path) => host * kPerHost + kHostLanes.indexOf(path);
    const a = side;
    const b = 1 - side;
    const fabric = 2 * kPerHost + a;
    const back = 2 * kPerHost + b;
    const qpn = 256 + (m % 16);
    const psn = (m * 3) % (1 << 24);
    let t = 1_000_000 + m * 1_050_000 + rnd(200_000);
    const post = t;
    const spans = [];
    const marks = [];
    let cause = 0;
    const add = (host, path, point, wait, dur, args, parent = cause) => {
      const l = typeof host === 'number' ? lane(host, path) : path;
      spans.push({ id, parent, lane: l, point: P[point], start: t + wait, dur, wait, msg: m, args });
      t += wait + dur;
      return id++;
    };
    const stage = () => marks.push(t);
    cause = add(a, 'cpu0', 'cpu.post', 0, 65_500, [qpn, 1]);
    stage();
    cause = add(a, 'cpu0.wc', 'cpu.wc_flush', 0, 40_000, [0x3ffe00800 + 0, 64, 0]);
    cause = add(a, 'pcie.down', 'pcie.MWr', rnd(3) * 1500, 86_191, [0, 64, 0x3ffe00800, 88]);
    stage();
    cause = add(a, 'hca.requester', 'hca.wqe', 10_000, 45_000, [qpn, m & 0xffff, 10, 4096]);
    stage();
    cause = add(a, 'hca.translation', 'hca.translate', 0, 15_000, [4097, 0x201000 + m, 4096]);
    const dma = cause;
    const begun = t;
    let last = t;
    for (let k = 0; k < 4; ++k) {
      t = begun + k * 2000;
      let c = add(a, 'pcie.up', 'pcie.MRd', 0, 81_688, [k, 512, 0x80000000 + k * 512, 24], dma);
      c = add(a, 'pcie.root_complex', 'pcie.dma_read', 5_000, 185_000, [k, 512, 0x80000000 + k * 512, 0], c);
      c = add(a, 'pcie.down', 'pcie.CplD', k * 19_420, 99_419, [k, 512, 0x80000000 + k * 512, 536], c);
      last = t;
      cause = c;
    }
    t = last;
    stage();
    cause = add(a, 'hca.tx', 'hca.tx', rnd(2) * 12_000, 80_000, [qpn, psn, 4, 4096]);
    const sent = t;
    cause = add(a, fabric, 'fabric.wire', 0, 400_280, [qpn, psn, 4, 4154]);
    spans[spans.length - 1].lane = fabric;
    const arrived = t;
    stage();
    cause = add(b, 'hca.rx', 'hca.rx', 0, 95_000, [qpn, psn, 4, 4096]);
    const received = cause;
    const at = t;
    stage();
    cause = add(b, 'hca.completions', 'hca.cqe', 0, 25_000, [2, qpn, 2, 0]);
    stage();
    cause = add(b, 'pcie.up', 'pcie.MWr', rnd(4) * 700, 99_701, [0, 64, 0x80002000, 88]);
    cause = add(b, 'pcie.root_complex', 'pcie.dma_write', 5_000, 60_000, [64, 0x80002000, 0x100402000]);
    stage();
    add(b, 'cpu0', 'cpu.poll', 0, 45_722, [0x7ffd_1000]);
    stage();
    const total = t - post;
    // The acknowledgement runs back beside the delivery.
    t = at;
    let c = add(b, 'hca.tx', 'hca.tx', 0, 80_000, [qpn, psn, 17, 0], received);
    c = add(b, back, 'fabric.wire', 0, 72_920, [qpn, psn, 17, 62], c);
    spans[spans.length - 1].lane = back;
    c = add(a, 'hca.rx', 'hca.rx', 0, 95_000, [qpn, psn, 17, 0], c);
    c = add(a, 'hca.completions', 'hca.cqe', 0, 25_000, [1, qpn, 0, 0], c);
    add(a, 'pcie.up', 'pcie.MWr', 0, 86_191, [0, 64, 0x80003000, 88], c);
    const stages = marks.map((x, i) => x - (i === 0 ? post : marks[i - 1]));
    yield {
      spans,
      message: { id: m, t: post, total, flow: 0, op: 2, bytes: 4096, stages },
      instants: m % 500 === 0 ? [{ t: at, lane: lane(a, 'hca.requester'), point: P['hca.retransmit'], msg: m, args: [qpn, psn, 1] }] : [],
      counters: [
        { t: post, lane: a * kPerHost + kHostLanes.length, point: P['hca.sq_depth'], v: (m % 7) + 1 },
        { t: post + total, lane: a * kPerHost + kHostLanes.length, point: P['hca.sq_depth'], v: m % 7 },
      ],
      states: m <= 8 ? [{ t: post, lane: (m % 2) * kPerHost + kHostLanes.length + 1, point: P['hca.state'], v: Math.min(3, m >> 1) }] : [],
      packets: [
        { t: sent, lane: fabric, point: P['fabric.frame'], msg: m, len: 4154, tx: 1 },
        { t: arrived, lane: fabric, point: P['fabric.frame'], msg: m, len: 4154, tx: 0 },
      ],
    };
  }
}

const kMeta = { version: 'synthetic', scenario: 'synthetic', seed: 1 };

/** Lines of the native format, without their newlines. */
export function* nativeLines(count) {
  const hosts = ['host0', 'host1'];
  yield JSON.stringify({ format: 'rdmasim-cols/1', time: 'ps', ...kMeta, hosts, stages: kStages, lanes: kLanes, config: { synthetic: true } });
  for (const p of kPoints) yield JSON.stringify({ k: 'point', ...p });
  const pending = { span: [], instant: [], counter: [], state: [], packet: [], msg: [] };
  const total = { span: 0, instant: 0, counter: 0, state: 0, packet: 0, msg: 0 };
  let end = 0;
  const put = (kind, row) => {
    pending[kind].push(row);
    total[kind]++;
  };
  for (const m of messages(count)) {
    for (const s of m.spans) put('span', s);
    for (const i of m.instants) put('instant', i);
    for (const c of m.counters) put('counter', c);
    for (const s of m.states) put('state', s);
    for (const p of m.packets) put('packet', p);
    put('msg', m.message);
    end = m.message.t + m.message.total;
    for (const kind of Object.keys(pending)) while (pending[kind].length >= kBlock) yield block(kind, pending[kind].splice(0, kBlock));
  }
  for (const kind of Object.keys(pending)) if (pending[kind].length > 0) yield block(kind, pending[kind]);
  yield JSON.stringify({
    k: 'end', spans: total.span, instants: total.instant, counters: total.counter, states: total.state, packets: total.packet, messages: total.msg, t_end: end,
  });
}

function block(kind, rows) {
  const t = (r) => (kind === 'span' ? r.start : r.t);
  const ends = (r) => (kind === 'span' ? r.start + r.dur : r.t + (r.total ?? 0));
  const t0 = rows.reduce((x, r) => Math.min(x, t(r)), Infinity);
  const out = { k: kind, n: rows.length, t0, t1: rows.reduce((x, r) => Math.max(x, ends(r)), 0) };
  const column = (name, values) => {
    if (values.some((v) => v !== 0)) out[name] = values;
  };
  const deltas = rows.map((r, i) => t(r) - (i === 0 ? t0 : t(rows[i - 1])));
  if (kind === 'span') {
    out.id0 = rows[0].id;
    column('id', rows.map((r, i) => r.id - rows[0].id - i));
    column('ts', deltas);
    column('dur', rows.map((r) => r.dur));
    column('wait', rows.map((r) => r.wait));
  } else {
    if (kind === 'msg') column('id', rows.map((r) => r.id));
    column('t', deltas);
  }
  if (kind === 'msg') {
    for (const k of ['total', 'flow', 'op', 'bytes']) column(k, rows.map((r) => r[k]));
    kStages.forEach((s, i) => column(s, rows.map((r) => r.stages[i])));
    return JSON.stringify(out);
  }
  column('lane', rows.map((r) => r.lane));
  column('point', rows.map((r) => r.point));
  if (kind === 'counter' || kind === 'state') {
    column('v', rows.map((r) => r.v));
    return JSON.stringify(out);
  }
  column('msg', rows.map((r) => r.msg));
  if (kind === 'packet') {
    column('len', rows.map((r) => r.len));
    column('tx', rows.map((r) => r.tx));
    return JSON.stringify(out);
  }
  if (kind === 'span') column('up', rows.map((r) => (r.parent === 0 ? 0 : r.id - r.parent)));
  for (let a = 0; a < 4; ++a) column(`a${a}`, rows.map((r) => r.args[a] ?? 0));
  return JSON.stringify(out);
}

const us = (ps) => {
  const ns = Math.floor((ps + 500) / 1000);
  const rest = ns % 1000;
  return rest === 0 ? String(ns / 1000) : `${Math.floor(ns / 1000)}.${String(rest).padStart(3, '0').replace(/0+$/, '')}`;
};
const duration = (start, dur) => us((Math.floor((start + dur + 500) / 1000) - Math.floor((start + 500) / 1000)) * 1000);

/** Lines of the Chrome JSON, without their newlines, as the simulator writes them. */
export function* chromeLines(count) {
  const pid = (host) => host + 2;
  let first = true;
  const line = (text) => {
    const out = first ? text : `,\n${text}`;
    first = false;
    return out;
  };
  yield '{"displayTimeUnit":"ns","otherData":{"format":"rdmasim-chrome/1","time_resolution":"1ns"},"traceEvents":[\n';
  for (const [p, name] of [[1, 'fabric'], [2, 'host0'], [3, 'host1'], [1000000, 'messages']]) {
    yield line(`{"ph":"M","pid":${p},"name":"process_name","args":{"name":"${name}"}}`);
  }
  for (const l of kLanes) {
    if (l.kind === 'counter') continue;
    yield line(`{"ph":"M","pid":${pid(l.host)},"tid":${(l.id + 1) * 1000},"name":"thread_name","args":{"name":"${l.path}"}}`);
  }
  const open = new Map();
  for (const m of messages(count)) {
    const continued = new Map();
    const chain = new Map();
    const byId = new Map(m.spans.map((s) => [s.id, s]));
    for (const s of m.spans) {
      const tid = (s.lane + 1) * 1000;
      const at = `"pid":${pid(kLanes[s.lane].host)},"tid":${tid}`;
      let mine = s.id;
      let flow = '';
      if (s.parent !== 0 && !continued.get(s.parent)) {
        continued.set(s.parent, true);
        mine = chain.get(s.parent);
        flow = ',"flow_in":true';
      } else if (s.parent !== 0) {
        const p = byId.get(s.parent);
        yield line(`{"ph":"s","pid":${pid(kLanes[p.lane].host)},"tid":${(p.lane + 1) * 1000},"ts":${us(p.start)},"id":${s.id},"cat":"cause","name":"cause"}`);
      }
      chain.set(s.id, mine);
      const args = kPoints[s.point].args.map((a, i) => `,"${a}":${s.args[i] ?? 0}`).join('');
      yield line(`{"ph":"X",${at},"ts":${us(s.start)},"dur":${duration(s.start, s.dur)},"name":"${kPoints[s.point].name}","bind_id":${mine}${flow},"flow_out":true,"args":{"msg":${s.msg},"span":${s.id},"wait_ps":${s.wait}${args}}}`);
      if (mine === s.id && s.parent !== 0) yield line(`{"ph":"f",${at},"ts":${us(s.start)},"id":${s.id},"cat":"cause","name":"cause","bp":"e"}`);
    }
    for (const i of m.instants) {
      const args = kPoints[i.point].args.map((a, k) => `,"${a}":${i.args[k]}`).join('');
      yield line(`{"ph":"i","pid":${pid(kLanes[i.lane].host)},"tid":${(i.lane + 1) * 1000 + 999},"ts":${us(i.t)},"s":"t","name":"${kPoints[i.point].name}","args":{"msg":${i.msg}${args}}}`);
    }
    for (const c of m.counters) {
      yield line(`{"ph":"C","pid":${pid(kLanes[c.lane].host)},"ts":${us(c.t)},"name":"${kLanes[c.lane].path}","args":{"${kPoints[c.point].args[0]}":${c.v}}}`);
    }
    for (const s of m.states) {
      const before = open.get(s.lane);
      if (before) yield line(stateLine(before, s.t, pid));
      open.set(s.lane, s);
    }
    const w = m.message;
    yield line(`{"ph":"b","pid":1000000,"cat":"message","name":"WR","id":${w.id},"ts":${us(w.t)},"args":{"op":${w.op},"bytes":${w.bytes},"flow":${w.flow}}}`);
    yield line(`{"ph":"e","pid":1000000,"cat":"message","name":"WR","id":${w.id},"ts":${us(w.t + w.total)}}`);
  }
  for (const s of open.values()) yield line(stateLine(s, s.t + 5_000_000, pid));
  yield `\n],"metadata":${JSON.stringify({ scenario: 'synthetic', version: 'synthetic', seed: 1, t_end_ps: 0, config: null })}}\n`;
}
function stateLine(s, end, pid) {
  const l = kLanes[s.lane];
  return `{"ph":"X","pid":${pid(l.host)},"tid":${(l.id + 1) * 1000},"ts":${us(s.t)},"dur":${duration(s.t, end - s.t)},"name":"${l.states[s.v]}"}`;
}

/** The whole text of a small trace. */
export function nativeText(count) {
  return [...nativeLines(count)].map((l) => `${l}\n`).join('');
}
export function chromeText(count) {
  return [...chromeLines(count)].join('');
}

/** Writes a trace of at least `spans` spans to a file; .gz is compressed. */
export async function write(format, spans, path) {
  const file = createWriteStream(path);
  let out = file;
  if (path.endsWith('.gz')) {
    out = createGzip({ level: 1 });
    out.pipe(file);
  }
  const count = Math.ceil(spans / kSpansPerMessage);
  let piece = '';
  for (const l of format === 'native' ? nativeLines(count) : chromeLines(count)) {
    piece += format === 'native' ? `${l}\n` : l;
    if (piece.length < 1 << 20) continue;
    if (!out.write(piece)) await once(out, 'drain');
    piece = '';
  }
  out.end(piece);
  await once(file, 'close');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [, , format, spans, path] = process.argv;
  if (!['native', 'chrome'].includes(format) || !(Number(spans) > 0) || !path) {
    console.error('usage: node test/synthetic.mjs native|chrome SPANS FILE[.gz]');
    process.exit(2);
  }
  await write(format, Number(spans), path);
}
