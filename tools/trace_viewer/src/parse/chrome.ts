// SPDX-License-Identifier: Apache-2.0
// Reader of the Chrome JSON that the simulator writes (docs/trace_format.md): one event per line, scanned as bytes. Lanes, slots,
// causes and messages are won back from thread ids, flows and async events. Not a reader of other programs' traces.
import type { Builder, RawMessage } from '../model/builder';
import type { LaneKind } from '../model/types';
import { CauseTable } from './causes';
import type { LineSink } from './lines';
import { Scanner } from './scanner';

const kFirstHostPid = 2;
const kMessagesPid = 1_000_000;
const kStateSlot = 998;
const kInstantSlot = 999;
const kFarTid = 1_000_000_000;
const kFarSlots = 10_000;

interface PointOf {
  id: number;
  args: string[];
}
interface NewLane {
  host: number;
  path: string;
}

export class ChromeParser implements LineSink {
  private readonly s = new Scanner();
  private readonly spanPoints = new Map<string, PointOf>();
  private readonly instantPoints = new Map<string, PointOf>();
  private readonly valuePoints = new Map<string, PointOf>();
  private readonly counterLanes = new Map<string, { index: number; lane: NewLane }>();
  private readonly hosts = new Map<number, string>();
  private readonly open = new Map<number, RawMessage>();
  private readonly causes = new CauseTable();
  private readonly hasSpans = new Set<number>();
  private readonly args = new Float64Array(4);
  // The event under way.
  private ph = 0;
  private pid = 0;
  private tid = 0;
  private t = 0;
  private dur = 0;
  private id = 0;
  private chain = 0;
  private flowIn = false;
  private name = '';
  private hasArgs = false;
  private msg = 0;
  private span = 0;
  private wait = 0;
  private label = '';
  private sortIndex = 0;
  /** Numbers of the work request by name, and its stages. */
  private details: Record<string, number> = {};
  private stages: [string, number][] = [];
  private argNames: string[] = [];
  private argCount = 0;

  constructor(private readonly out: Builder) {
    out.resolution = 1000;
    out.header.format = 'rdmasim-chrome/1';
  }

  line(buffer: Uint8Array, from: number, to: number, number: number, offset: number): void {
    if (number === 1 || to === from) return;
    if (buffer[from] === 93) return this.tail(new TextDecoder().decode(buffer.subarray(from, to)), number);
    this.s.lineStart = from;
    this.s.set(buffer, from, buffer[to - 1] === 44 ? to - 1 : to);
    try {
      this.event();
    } catch (e) {
      this.out.say('error', `line ${number} (byte ${offset}): ${(e as Error).message}; skipped`);
    }
  }

  rest(buffer: Uint8Array, number: number, offset: number): void {
    if (buffer[0] === 93) {
      try {
        JSON.parse('{"x":[' + new TextDecoder().decode(buffer));
        return this.tail(new TextDecoder().decode(buffer), number);
      } catch {
        // cut inside the metadata: reported below
      }
    }
    this.out.say('warning', `the file is cut short in line ${number}, at byte ${offset + buffer.length}; that line is lost`);
  }

  finish(): void {
    if (!this.out.complete) this.out.say('warning', 'the file has no metadata at its end: it was cut short');
    for (let pid = kFirstHostPid; this.hosts.has(pid); ++pid) this.out.header.hosts.push(this.hosts.get(pid)!);
    const less = this.out.header.stages.length > 0 ? 'no raw bytes' : 'neither stages nor raw bytes';
    this.out.say('note', `Chrome JSON holds times in whole nanoseconds and ${less}: the native trace has all of it`);
    this.placeCounters();
    this.causes.resolve(this.out.spans);
  }

  private event(): void {
    const s = this.s;
    this.hasArgs = false;
    this.flowIn = false;
    this.chain = 0;
    this.dur = 0;
    s.expect(123);
    do {
      const key = s.string();
      s.expect(58);
      switch (key) {
        case 'ph':
          this.ph = s.string().charCodeAt(0);
          break;
        case 'pid':
          this.pid = s.integer();
          break;
        case 'tid':
          this.tid = s.integer();
          break;
        case 'ts':
          this.t = s.microseconds();
          break;
        case 'dur':
          this.dur = s.microseconds();
          break;
        case 'name':
          this.name = s.string();
          break;
        case 'id':
          this.id = s.integer();
          break;
        case 'bind_id':
          this.chain = s.integer();
          break;
        case 'flow_in':
          this.flowIn = s.boolean();
          break;
        case 'args':
          this.arguments();
          break;
        default:
          s.skip();
      }
    } while (s.take(44));
    s.expect(125);
    this.record();
  }

  private arguments(): void {
    const s = this.s;
    this.hasArgs = true;
    this.msg = this.span = this.wait = 0;
    this.argCount = 0;
    const message = this.pid === kMessagesPid;
    if (message) {
      this.details = {};
      this.stages = [];
    }
    s.expect(123);
    if (s.take(125)) return;
    do {
      const key = s.string();
      s.expect(58);
      if (s.peek() === 34) {
        this.label = s.string();
        continue;
      }
      if (s.peek() === 123) {
        this.nested(key);
        continue;
      }
      const value = s.integer();
      if (message) this.details[key] = value;
      else if (key === 'msg') this.msg = value;
      else if (key === 'span') this.span = value;
      else if (key === 'wait_ps') this.wait = value;
      else if (key === 'sort_index') this.sortIndex = value;
      else if (this.argCount < 4) {
        this.args[this.argCount] = value;
        this.argNames[this.argCount++] = key;
      }
    } while (s.take(44));
    s.expect(125);
  }

  /** Numbers by name one level down; those of "stages" are kept. */
  private nested(of: string): void {
    const s = this.s;
    s.expect(123);
    if (s.take(125)) return;
    do {
      const key = s.string();
      s.expect(58);
      const value = s.integer();
      if (of === 'stages') this.stages.push([key, value]);
    } while (s.take(44));
    s.expect(125);
  }

  private record(): void {
    switch (this.ph) {
      case 88:
        return this.hasArgs ? this.addSpan() : this.addState(); // X
      case 67:
        return this.addCounter(); // C
      case 105:
        return this.addInstant(); // i
      case 115:
        return this.causes.fork(this.id, this.tid, this.t); // s
      case 102:
        return; // f: the span before it is the fork's child
      case 98:
        this.open.set(this.id, this.beginMessage());
        return; // b
      case 101:
        return this.endMessage(); // e
      case 77:
        return this.meta(); // M
      default:
        throw new Error(`event of phase “${String.fromCharCode(this.ph)}” is not known`);
    }
  }

  private meta(): void {
    if (this.name === 'process_name') {
      if (this.pid >= kFirstHostPid && this.pid !== kMessagesPid) this.hosts.set(this.pid, this.label);
      return;
    }
    if (this.name !== 'thread_name') return;
    const [lane, slot] = split(this.tid);
    if (this.out.lanes[lane]) return;
    let path = this.label;
    if (slot === kInstantSlot) path = path.replace(/ events$/, '');
    else if (slot === kStateSlot) path = path.replace(/ state$/, '');
    else if (slot > 0) path = path.replace(/ #\d+$/, '');
    this.out.lane({ id: lane, host: hostOf(this.pid), path, kind: 'instant', states: [] });
  }

  private addSpan(): void {
    const c = this.out.spans;
    const [lane] = split(this.tid);
    const point = this.pointOf(this.spanPoints, 'span');
    c.reserve(1);
    const i = c.n;
    c.col.id[i] = this.out.checkId(this.span, 'span id');
    c.col.start[i] = this.t;
    c.col.dur[i] = this.dur;
    c.col.wait[i] = this.wait;
    c.col.lane[i] = lane;
    c.col.point[i] = point.id;
    c.col.msg[i] = this.out.checkId(this.msg, 'message id');
    this.copyArguments(c.col, i, point);
    c.col.parent[i] = this.causes.span(this.span, this.tid, this.chain, this.flowIn);
    if (!this.hasSpans.has(lane)) {
      this.hasSpans.add(lane);
      if (this.out.lanes[lane]) this.out.lanes[lane].kind = 'pipelined';
    }
    c.n = i + 1;
  }

  private addInstant(): void {
    const c = this.out.instants;
    const point = this.pointOf(this.instantPoints, 'instant');
    c.reserve(1);
    const i = c.n;
    c.col.t[i] = this.t;
    c.col.lane[i] = split(this.tid)[0];
    c.col.point[i] = point.id;
    c.col.msg[i] = this.out.checkId(this.msg, 'message id');
    c.col.parent[i] = 0;
    this.copyArguments(c.col, i, point);
    c.n = i + 1;
  }

  private addCounter(): void {
    const key = `${this.pid} ${this.name}`;
    let lane = this.counterLanes.get(key);
    if (!lane) {
      lane = { index: this.counterLanes.size, lane: { host: hostOf(this.pid), path: this.name } };
      this.counterLanes.set(key, lane);
    }
    const quantity = this.argNames[0];
    let point = this.valuePoints.get(quantity);
    if (!point) point = this.newPoint(this.valuePoints, quantity, quantity, '', 'counter', [quantity]);
    const c = this.out.counters;
    c.reserve(1);
    c.col.t[c.n] = this.t;
    c.col.lane[c.n] = lane.index;
    c.col.point[c.n] = point.id;
    c.col.v[c.n] = this.args[0];
    c.n++;
  }

  private addState(): void {
    const [id] = split(this.tid);
    const lane = this.out.lanes[id];
    if (!lane) throw new Error(`thread ${this.tid} has no name`);
    let value = lane.states.indexOf(this.name);
    if (value < 0) value = lane.states.push(this.name) - 1;
    if (lane.kind === 'instant') lane.kind = 'state';
    let point = this.valuePoints.get('state');
    if (!point) point = this.newPoint(this.valuePoints, 'state', 'state', '', 'state', ['state']);
    const c = this.out.states;
    c.reserve(1);
    c.col.t[c.n] = this.t;
    c.col.lane[c.n] = id;
    c.col.point[c.n] = point.id;
    c.col.v[c.n] = value;
    c.n++;
  }

  private beginMessage(): RawMessage {
    if (!this.hasArgs) this.details = {};
    const d = this.details;
    return {
      id: this.out.checkId(this.id, 'message id'),
      t: this.t,
      total: NaN,
      flow: d.flow ?? 0,
      op: d.op ?? 0,
      bytes: d.bytes ?? 0,
      stages: null,
      ...known(d),
    };
  }
  private endMessage(): void {
    const m = this.open.get(this.id);
    if (!m) throw new Error(`message ${this.id} ends without a beginning`);
    this.open.delete(this.id);
    m.total = this.t - m.t;
    if (this.hasArgs) {
      Object.assign(m, known(this.details));
      if (this.stages.length > 0) this.addStages(m);
    }
    this.out.messages.push(m);
  }

  /** Stages are exact where times are whole nanoseconds: their sum is the latency, unless it is another one. */
  private addStages(m: RawMessage): void {
    const names = this.out.header.stages;
    m.stages = [];
    let sum = 0;
    for (const [name, ps] of this.stages) {
      let at = names.indexOf(name);
      if (at < 0) at = names.push(name) - 1;
      m.stages[at] = ps;
      sum += ps;
    }
    if (Math.abs(sum - m.total) <= 1000) m.total = sum;
  }

  private pointOf(points: Map<string, PointOf>, kind: 'span' | 'instant'): PointOf {
    return (
      points.get(this.name) ??
      this.newPoint(points, this.name, this.name, this.name.split('.')[0], kind, this.argNames.slice(0, this.argCount))
    );
  }
  private newPoint(
    points: Map<string, PointOf>,
    key: string,
    name: string,
    cat: string,
    kind: 'span' | 'instant' | 'counter' | 'state',
    args: string[],
  ): PointOf {
    const point = { id: this.out.points.length, args };
    this.out.point(point.id, name, cat, kind, args);
    points.set(key, point);
    return point;
  }

  /** Every event of a point has the same arguments; if not, they are matched by name. */
  private copyArguments(col: Builder['instants']['col'] | Builder['spans']['col'], i: number, point: PointOf): void {
    const columns = [col.a0, col.a1, col.a2, col.a3];
    for (let a = 0; a < 4; ++a) {
      let value = 0;
      if (a < point.args.length) {
        const at = this.argNames[a] === point.args[a] && a < this.argCount ? a : this.argNames.indexOf(point.args[a]);
        if (at >= 0 && at < this.argCount) value = this.args[at];
      }
      columns[a][i] = value;
    }
  }

  /** Counters name their lane by host and path; it may have a thread, or else gets a lane of its own. */
  private placeCounters(): void {
    const byName = new Map<string, number>();
    for (const l of this.out.lanes) if (l) byName.set(`${l.host} ${l.path}`, l.id);
    const target: number[] = [];
    for (const { index, lane } of this.counterLanes.values()) {
      let id = byName.get(`${lane.host} ${lane.path}`);
      if (id === undefined) {
        id = this.out.lanes.length;
        const kind: LaneKind = 'counter';
        this.out.lane({ id, host: lane.host, path: lane.path, kind, states: [] });
      }
      target[index] = id;
    }
    const col = this.out.counters.col.lane;
    for (let i = 0; i < this.out.counters.n; ++i) col[i] = target[col[i]];
    void this.sortIndex;
  }

  private tail(line: string, number: number): void {
    if (!line.startsWith('],"metadata":')) {
      this.out.say('error', `line ${number}: metadata expected`);
      return;
    }
    const meta = (JSON.parse('{' + line.slice(2)) as { metadata: Record<string, unknown> }).metadata;
    const h = this.out.header;
    h.scenario = String(meta.scenario ?? '');
    h.version = String(meta.version ?? '');
    h.seed = Number(meta.seed ?? 0);
    h.config = meta.config ?? null;
    this.out.complete = true;
  }
}

/** Lane and slot of a thread id. */
function split(tid: number): [number, number] {
  if (tid >= kFarTid) {
    const x = tid - kFarTid;
    return [Math.floor(x / kFarSlots), 1000 + (x % kFarSlots)];
  }
  return [Math.floor(tid / 1000) - 1, tid % 1000];
}
function known(d: Record<string, number>): Partial<RawMessage> {
  const out: Partial<RawMessage> = {};
  if ('wr_id' in d) out.wrId = d.wr_id;
  if ('qpn' in d) out.qpn = d.qpn;
  if ('host' in d) out.host = d.host;
  if ('status' in d) out.status = d.status;
  return out;
}
function hostOf(pid: number): number {
  return pid < kFirstHostPid ? -1 : pid - kFirstHostPid;
}
