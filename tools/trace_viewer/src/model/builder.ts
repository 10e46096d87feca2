// SPDX-License-Identifier: Apache-2.0
// What parsers fill: columns in file order, lanes, points, messages and diagnostics. buildTrace() in index.ts sorts and indexes it.
import { instantColumns, packetColumns, spanColumns, valueColumns } from './columns';
import { ByteStore } from './byte_store';
import type { BytesKind, Diagnostic, Header, Lane, Mark, Point, RecordKind } from './types';

export interface RawMessage {
  id: number;
  t: number;
  total: number;
  flow: number;
  op: number;
  bytes: number;
  stages: number[] | null;
  /** From columns that a file may have or lack. */
  wrId?: number;
  qpn?: number;
  host?: number;
  /** enum ibv_wc_status. */
  status?: number;
}

/** Ids beyond this would make the dense index tables absurdly large: the file is damaged. */
const kMaxId = 1 << 27;
const kMaxDiagnostics = 50;

export class Builder {
  header: Header = {
    format: '',
    version: '',
    scenario: '',
    seed: 0,
    hosts: [],
    stages: [],
    config: null,
  };
  lanes: Lane[] = [];
  points: Point[] = [];
  spans = spanColumns();
  instants = instantColumns();
  counters = valueColumns();
  states = valueColumns();
  packets = packetColumns();
  bytes = new ByteStore();
  messages: RawMessage[] = [];
  diagnostics: Diagnostic[] = [];
  complete = false;
  resolution = 1;
  private dropped = 0;

  say(severity: Diagnostic['severity'], text: string): void {
    if (this.diagnostics.length < kMaxDiagnostics) this.diagnostics.push({ severity, text });
    else this.dropped++;
  }
  get unsaid(): number {
    return this.dropped;
  }

  /** Declares a lane; ids may come in any order but each once. */
  lane(lane: Lane): void {
    if (lane.id < 0 || lane.id > 1 << 20) throw new Error(`lane id ${lane.id} is out of range`);
    this.lanes[lane.id] = lane;
  }
  point(
    id: number,
    name: string,
    cat: string,
    kind: RecordKind,
    args: string[],
    more: { bytes?: BytesKind | null; mark?: Mark | null; markIf?: number } = {},
  ): void {
    if (id < 0 || id > 0xffff) throw new Error(`point id ${id} is out of range`);
    const { bytes = null, mark = null, markIf = -1 } = more;
    this.points[id] = { id, name, cat, kind, args: args.slice(0, 4), bytes, mark, markIf };
  }

  checkId(id: number, what: string): number {
    if (id >= 0 && id < kMaxId) return id;
    throw new Error(`${what} ${id} is out of range`);
  }

  /** `fraction` of the file is read: makes room for the rest, so that columns need not grow many times. */
  expectRest(fraction: number): void {
    for (const c of [this.spans, this.instants, this.counters, this.states, this.packets]) {
      if (c.n > 1000) c.reserve(Math.ceil(c.n * (1.03 / fraction - 1)));
    }
  }

  get records(): number {
    return this.spans.n + this.instants.n + this.counters.n + this.states.n + this.packets.n + this.messages.length;
  }
}
