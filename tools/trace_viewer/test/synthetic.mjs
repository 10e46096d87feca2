// SPDX-License-Identifier: Apache-2.0
// Writes a synthetic trace of any size, for tests and the bench. The same arguments give the same bytes, in both formats the same
// records.
//   node test/synthetic.mjs native|bytes|chrome SPANS FILE[.gz]       bytes: native with raw bytes and numbers of work requests
import { createWriteStream } from 'node:fs';
import { once } from 'node:events';
import { createGzip } from 'node:zlib';
import { pathToFileURL } from 'node:url';
import { frameHead, kBytesOf, spanBytes } from './synthetic_bytes.mjs';
import { kLanes, kPoints, kSpansPerMessage, kStages, messages } from './synthetic_records.mjs';

export { kSpansPerMessage, kStages };

const kBlock = 4096;

const kMeta = { version: 'synthetic', scenario: 'synthetic', seed: 1 };

/** Lines of the native format, without their newlines; `raw`: with raw bytes, frame numbers and numbers of work requests. */
export function* nativeLines(count, raw = false) {
  const hosts = ['host0', 'host1'];
  yield JSON.stringify({
    format: 'rdmasim-cols/1',
    time: 'ps',
    ...kMeta,
    hosts,
    stages: kStages,
    lanes: kLanes,
    config: { synthetic: true },
  });
  for (const p of kPoints)
    yield JSON.stringify({ k: 'point', ...p, ...(raw && kBytesOf[p.name] ? { bytes: kBytesOf[p.name] } : {}) });
  const pending = { span: [], instant: [], counter: [], state: [], packet: [], msg: [] };
  const total = { span: 0, instant: 0, counter: 0, state: 0, packet: 0, msg: 0 };
  let end = 0;
  const put = (kind, row) => {
    pending[kind].push(row);
    total[kind]++;
  };
  for (const m of messages(count)) {
    if (raw) addBytes(m);
    for (const s of m.spans) put('span', s);
    for (const i of m.instants) put('instant', i);
    for (const c of m.counters) put('counter', c);
    for (const s of m.states) put('state', s);
    for (const p of m.packets) put('packet', p);
    put('msg', m.message);
    end = m.message.t + m.message.total;
    for (const kind of Object.keys(pending))
      while (pending[kind].length >= kBlock) yield block(kind, pending[kind].splice(0, kBlock));
  }
  for (const kind of Object.keys(pending)) if (pending[kind].length > 0) yield block(kind, pending[kind]);
  yield JSON.stringify({
    k: 'end',
    spans: total.span,
    instants: total.instant,
    counters: total.counter,
    states: total.state,
    packets: total.packet,
    messages: total.msg,
    t_end: end,
  });
}

/** Gives the records of a message their raw bytes, and the message its numbers. */
function addBytes(m) {
  for (const s of m.spans) s.bytes = spanBytes(kPoints[s.point].name, s.id, s.args);
  const wire = m.spans.find((s) => kPoints[s.point].name === 'fabric.wire');
  for (const p of m.packets) {
    p.frame = 2 ** 37 + m.message.id;
    p.bytes = p.tx ? frameHead(wire.args[0], wire.args[1], m.message.id) : '';
  }
  Object.assign(m.message, { wr_id: m.message.id * 3, qpn: wire.args[0], host: m.message.id % 2 });
}

function block(kind, rows) {
  const t = (r) => (kind === 'span' ? r.start : r.t);
  const ends = (r) => (kind === 'span' ? r.start + r.dur : r.t + (r.total ?? 0));
  const t0 = rows.reduce((x, r) => Math.min(x, t(r)), Infinity);
  const out = { k: kind, n: rows.length, t0, t1: rows.reduce((x, r) => Math.max(x, ends(r)), 0) };
  const column = (name, values) => {
    if (values.some((v) => v !== 0 && v !== '' && v !== undefined)) out[name] = values;
  };
  const deltas = rows.map((r, i) => t(r) - (i === 0 ? t0 : t(rows[i - 1])));
  if (kind === 'span') {
    out.id0 = rows[0].id;
    column(
      'id',
      rows.map((r, i) => r.id - rows[0].id - i),
    );
    column('ts', deltas);
    column(
      'dur',
      rows.map((r) => r.dur),
    );
    column(
      'wait',
      rows.map((r) => r.wait),
    );
  } else {
    if (kind === 'msg')
      column(
        'id',
        rows.map((r) => r.id),
      );
    column('t', deltas);
  }
  if (kind === 'msg') {
    for (const k of ['total', 'flow', 'op', 'bytes', 'wr_id', 'qpn', 'host'])
      column(
        k,
        rows.map((r) => r[k]),
      );
    kStages.forEach((s, i) =>
      column(
        s,
        rows.map((r) => r.stages[i]),
      ),
    );
    return JSON.stringify(out);
  }
  column(
    'lane',
    rows.map((r) => r.lane),
  );
  column(
    'point',
    rows.map((r) => r.point),
  );
  if (kind === 'counter' || kind === 'state') {
    column(
      'v',
      rows.map((r) => r.v),
    );
    return JSON.stringify(out);
  }
  column(
    'msg',
    rows.map((r) => r.msg),
  );
  if (kind === 'packet') {
    column(
      'len',
      rows.map((r) => r.len),
    );
    column(
      'tx',
      rows.map((r) => r.tx),
    );
    column(
      'frame',
      rows.map((r) => r.frame),
    );
    column(
      'bytes',
      rows.map((r) => r.bytes),
    );
    return JSON.stringify(out);
  }
  if (kind === 'span')
    column(
      'up',
      rows.map((r) => (r.parent === 0 ? 0 : r.id - r.parent)),
    );
  for (let a = 0; a < 4; ++a)
    column(
      `a${a}`,
      rows.map((r) => r.args[a] ?? 0),
    );
  column(
    'bytes',
    rows.map((r) => r.bytes),
  );
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
  for (const [p, name] of [
    [1, 'fabric'],
    [2, 'host0'],
    [3, 'host1'],
    [1000000, 'messages'],
  ]) {
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
        yield line(
          `{"ph":"s","pid":${pid(kLanes[p.lane].host)},"tid":${(p.lane + 1) * 1000},"ts":${us(p.start)},"id":${s.id},"cat":"cause","name":"cause"}`,
        );
      }
      chain.set(s.id, mine);
      const args = kPoints[s.point].args.map((a, i) => `,"${a}":${s.args[i] ?? 0}`).join('');
      yield line(
        `{"ph":"X",${at},"ts":${us(s.start)},"dur":${duration(s.start, s.dur)},"name":"${kPoints[s.point].name}","bind_id":${mine}${flow},"flow_out":true,"args":{"msg":${s.msg},"span":${s.id},"wait_ps":${s.wait}${args}}}`,
      );
      if (mine === s.id && s.parent !== 0)
        yield line(`{"ph":"f",${at},"ts":${us(s.start)},"id":${s.id},"cat":"cause","name":"cause","bp":"e"}`);
    }
    for (const i of m.instants) {
      const args = kPoints[i.point].args.map((a, k) => `,"${a}":${i.args[k]}`).join('');
      yield line(
        `{"ph":"i","pid":${pid(kLanes[i.lane].host)},"tid":${(i.lane + 1) * 1000 + 999},"ts":${us(i.t)},"s":"t","name":"${kPoints[i.point].name}","args":{"msg":${i.msg}${args}}}`,
      );
    }
    for (const c of m.counters) {
      yield line(
        `{"ph":"C","pid":${pid(kLanes[c.lane].host)},"ts":${us(c.t)},"name":"${kLanes[c.lane].path}","args":{"${kPoints[c.point].args[0]}":${c.v}}}`,
      );
    }
    for (const s of m.states) {
      const before = open.get(s.lane);
      if (before) yield line(stateLine(before, s.t, pid));
      open.set(s.lane, s);
    }
    const w = m.message;
    yield line(
      `{"ph":"b","pid":1000000,"cat":"message","name":"WR","id":${w.id},"ts":${us(w.t)},"args":{"op":${w.op},"bytes":${w.bytes},"flow":${w.flow}}}`,
    );
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
export function nativeText(count, raw = false) {
  return [...nativeLines(count, raw)].map((l) => `${l}\n`).join('');
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
  const chrome = format === 'chrome';
  for (const l of chrome ? chromeLines(count) : nativeLines(count, format === 'bytes')) {
    piece += chrome ? l : `${l}\n`;
    if (piece.length < 1 << 20) continue;
    if (!out.write(piece)) await once(out, 'drain');
    piece = '';
  }
  out.end(piece);
  await once(file, 'close');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [, , format, spans, path] = process.argv;
  if (!['native', 'bytes', 'chrome'].includes(format) || !(Number(spans) > 0) || !path) {
    console.error('usage: node test/synthetic.mjs native|bytes|chrome SPANS FILE[.gz]');
    process.exit(2);
  }
  await write(format, Number(spans), path);
}
