// SPDX-License-Identifier: Apache-2.0
// Turns what a parser collected into a Trace: sorts every kind of record by lane and time, spreads overlapping spans over slots,
// links spans to messages and to their causes, and builds the pyramid. Runs in the worker.
import type { Builder } from './builder';
import type { Columns } from './columns';
import { buildLod } from './lod';
import { buildMessages } from './messages';
import { assignSlots } from './slots';
import { groupAndSort, groupBy, permute } from './sort';
import type { Csr, Instants, Lane, Packets, Point, Spans, Trace, Values } from './types';
import { kNone } from './types';

export function buildTrace(raw: Builder, name: string, bytesRead: number): Trace {
  fillGaps(raw);
  const lanes = raw.lanes;
  const { spans, rows, crowded } = sortSpans(raw);
  if (crowded > 0)
    raw.say('note', `${crowded} lane(s) hold more spans at once than there is room for; some are drawn over each other`);
  const instants = sortInstants(raw);
  const packets = sortPackets(raw);
  const counters = sortValues(raw.counters, raw.points.length);
  const states = sortValues(raw.states, raw.points.length);
  const byId = indexIds(raw, spans);
  const most = highestMessage(raw, spans, instants.records, packets.records);
  const spansOf = csr(spans.msg, spans.n, most);
  const instantsOf = csr(instants.records.msg, instants.records.n, most);
  const packetsOf = csr(packets.records.msg, packets.records.n, most);
  const messages = buildMessages(raw, spans, spansOf, most);
  const messageRow = new Uint32Array(most + 1).fill(kNone);
  for (let r = 0; r < messages.n; ++r) messageRow[messages.id[r]] = r;
  const [t0, t1] = extent(raw, spans);
  if (raw.unsaid > 0) raw.diagnostics.push({ severity: 'warning', text: `${raw.unsaid} more problems like these` });
  return {
    name,
    header: raw.header,
    lanes,
    points: raw.points,
    spans,
    rows,
    lod: buildLod(spans, rows),
    byId,
    instants: instants.records,
    instantOffset: instants.offset,
    packets: packets.records,
    packetOffset: packets.offset,
    pieces: raw.bytes.pieces,
    counters,
    states,
    messages,
    messageRow,
    spansOf,
    instantsOf,
    packetsOf,
    t0,
    t1,
    complete: raw.complete,
    resolution: raw.resolution,
    diagnostics: raw.diagnostics,
    bytesRead,
  };
}

/** Records may name lanes and points whose declarations were lost: they get a name of their own. */
function fillGaps(raw: Builder): void {
  const lanes = new Set<number>();
  const points = new Set<number>();
  for (const c of [raw.spans, raw.instants, raw.counters, raw.states, raw.packets]) {
    for (let i = 0; i < c.n; ++i) {
      if (!raw.lanes[c.col.lane[i]]) lanes.add(c.col.lane[i]);
      if (!raw.points[c.col.point[i]]) points.add(c.col.point[i]);
    }
  }
  if (lanes.size + points.size > 0)
    raw.say('warning', `records name ${lanes.size} lanes and ${points.size} points that are nowhere declared`);
  for (let i = Math.max(raw.lanes.length - 1, ...lanes); i >= 0; --i) {
    if (!raw.lanes[i]) raw.lanes[i] = { id: i, host: -1, path: `lane ${i}`, kind: 'pipelined', states: [] } satisfies Lane;
  }
  for (let i = Math.max(raw.points.length - 1, ...points); i >= 0; --i) {
    if (!raw.points[i])
      raw.points[i] = {
        id: i,
        name: `point ${i}`,
        cat: '',
        kind: 'span',
        args: [],
        bytes: null,
        mark: null,
        markIf: -1,
      } satisfies Point;
  }
}

function sortSpans(raw: Builder) {
  const c = raw.spans;
  const col = c.col;
  const start = col.start as Float64Array;
  const dur = col.dur as Float64Array;
  const byLane = groupAndSort(col.lane, c.n, raw.lanes.length, start);
  const { rows, order, crowded } = assignSlots(byLane, raw.lanes.length, start, dur);
  const spans: Spans = {
    n: c.n,
    id: permute(col.id as Uint32Array, order),
    start: permute(start, order),
    dur: permute(dur, order),
    wait: permute(col.wait as Float64Array, order),
    lane: permute(col.lane as Uint32Array, order),
    point: permute(col.point as Uint16Array, order),
    msg: permute(col.msg as Uint32Array, order),
    parent: permute(col.parent as Uint32Array, order),
    args: ([col.a0, col.a1, col.a2, col.a3] as Float64Array[]).map((a) => permute(a, order)),
    bytes: permute(col.bytes as Uint32Array, order),
  };
  return { spans, rows, crowded };
}

/** The columns that all records of one time have, in `order`. */
function atOneTime(c: Columns<'t' | 'lane' | 'point' | 'msg'>, order: Uint32Array) {
  return {
    n: c.n,
    t: permute(c.col.t as Float64Array, order),
    lane: permute(c.col.lane as Uint32Array, order),
    point: permute(c.col.point as Uint16Array, order),
    msg: permute(c.col.msg as Uint32Array, order),
  };
}

function sortInstants(raw: Builder): { records: Instants; offset: Uint32Array } {
  const c = raw.instants;
  const col = c.col;
  const { order, offset } = groupAndSort(col.lane, c.n, raw.lanes.length, col.t as Float64Array);
  return {
    offset,
    records: {
      ...atOneTime(c, order),
      parent: permute(col.parent as Uint32Array, order),
      args: ([col.a0, col.a1, col.a2, col.a3] as Float64Array[]).map((a) => permute(a, order)),
      bytes: permute(col.bytes as Uint32Array, order),
    },
  };
}

function sortPackets(raw: Builder): { records: Packets; offset: Uint32Array } {
  const c = raw.packets;
  const col = c.col;
  const { order, offset } = groupAndSort(col.lane, c.n, raw.lanes.length, col.t as Float64Array);
  return {
    offset,
    records: {
      ...atOneTime(c, order),
      len: permute(col.len as Uint32Array, order),
      tx: permute(col.tx as Uint8Array, order),
      frame: permute(col.frame as Float64Array, order),
      bytes: permute(col.bytes as Uint32Array, order),
    },
  };
}

function sortValues(c: Builder['counters'], points: number): Values {
  const t = c.col.t as Float64Array;
  const v = c.col.v as Float64Array;
  const key = new Uint32Array(c.n);
  const number = new Map<number, number>();
  const series: Values['series'] = [];

  for (let i = 0; i < c.n; ++i) {
    const pair = c.col.lane[i] * (points + 1) + c.col.point[i];
    let s = number.get(pair);
    if (s === undefined) {
      s = series.length;
      number.set(pair, s);
      series.push({ lane: c.col.lane[i], point: c.col.point[i], from: 0, to: 0, max: -Infinity, min: Infinity });
    }
    key[i] = s;
    const e = series[s];
    if (v[i] > e.max) e.max = v[i];
    if (v[i] < e.min) e.min = v[i];
  }
  const { order, offset } = groupAndSort(key, c.n, series.length, t);
  series.forEach((s, i) => {
    s.from = offset[i];
    s.to = offset[i + 1];
  });
  return { n: c.n, t: permute(t, order), v: permute(v, order), series };
}

function indexIds(raw: Builder, spans: Spans): Uint32Array {
  let most = 0;
  for (let i = 0; i < spans.n; ++i) if (spans.id[i] > most) most = spans.id[i];
  const byId = new Uint32Array(most + 1).fill(kNone);
  let twice = 0;
  for (let i = 0; i < spans.n; ++i) {
    if (spans.id[i] === 0) continue;
    if (byId[spans.id[i]] !== kNone) ++twice;
    byId[spans.id[i]] = i;
  }
  if (twice > 0) raw.say('warning', `${twice} spans have an id that another span has too: arrows lead to the last one`);
  return byId;
}

function highestMessage(raw: Builder, ...records: { n: number; msg: Uint32Array }[]): number {
  let most = 0;
  for (const r of records) for (let i = 0; i < r.n; ++i) if (r.msg[i] > most) most = r.msg[i];
  for (const m of raw.messages) if (m.id > most) most = m.id;
  return most;
}

function csr(msg: Uint32Array, n: number, most: number): Csr {
  const { order, offset } = groupBy(msg, n, most + 1);
  // Records without a message need no list.
  const none = offset[1];
  return { offset: offset.map((o) => (o < none ? 0 : o - none)), list: order.slice(none) };
}

function extent(raw: Builder, spans: Spans): [number, number] {
  let t0 = Infinity;
  let t1 = -Infinity;
  for (let i = 0; i < spans.n; ++i) {
    const a = spans.start[i];
    const z = a + spans.dur[i];
    if (a < t0) t0 = a;
    if (z > t1) t1 = z;
  }
  for (const c of [raw.instants, raw.counters, raw.states, raw.packets]) {
    for (let i = 0; i < c.n; ++i) {
      const t = c.col.t[i];
      if (t < t0) t0 = t;
      if (t > t1) t1 = t;
    }
  }
  for (const m of raw.messages) {
    if (m.t < t0) t0 = m.t;
    if (m.t + m.total > t1) t1 = m.t + m.total;
  }
  return t0 <= t1 ? [t0, t1] : [0, 0];
}
