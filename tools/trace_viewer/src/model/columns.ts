// SPDX-License-Identifier: Apache-2.0
// Growing typed columns for parsers. reserve() before a block, then write to data[] directly; no bounds are checked here.

type Typed = Float64Array | Uint32Array | Uint16Array | Uint8Array;

export class Columns<K extends string> {
  n = 0;
  private capacity = 0;
  readonly col: Record<K, Typed>;

  constructor(private readonly types: Record<K, new (n: number) => Typed>) {
    this.col = {} as Record<K, Typed>;
    for (const k of Object.keys(types) as K[]) this.col[k] = new types[k](0);
  }

  /** Makes room for `extra` more rows. */
  reserve(extra: number): void {
    const want = this.n + extra;
    if (want <= this.capacity) return;
    this.capacity = Math.max(want, Math.ceil(this.capacity * 1.6), 1024);
    for (const k of Object.keys(this.types) as K[]) {
      const old = this.col[k];
      const fresh = new this.types[k](this.capacity);
      fresh.set(old as never);
      this.col[k] = fresh;
    }
  }
}

export type SpanKey = 'id' | 'start' | 'dur' | 'wait' | 'lane' | 'point' | 'msg' | 'parent' | 'a0' | 'a1' | 'a2' | 'a3' | 'bytes';
export type InstantKey = 't' | 'lane' | 'point' | 'msg' | 'parent' | 'a0' | 'a1' | 'a2' | 'a3' | 'bytes';
export type ValueKey = 't' | 'lane' | 'point' | 'v';
export type PacketKey = 't' | 'lane' | 'point' | 'msg' | 'len' | 'tx' | 'frame' | 'bytes';

const kArgs = { a0: Float64Array, a1: Float64Array, a2: Float64Array, a3: Float64Array };

export const spanColumns = () =>
  new Columns<SpanKey>({
    id: Uint32Array,
    start: Float64Array,
    dur: Float64Array,
    wait: Float64Array,
    lane: Uint32Array,
    point: Uint16Array,
    msg: Uint32Array,
    parent: Uint32Array,
    bytes: Uint32Array,
    ...kArgs,
  });
export const instantColumns = () =>
  new Columns<InstantKey>({
    t: Float64Array,
    lane: Uint32Array,
    point: Uint16Array,
    msg: Uint32Array,
    parent: Uint32Array,
    bytes: Uint32Array,
    ...kArgs,
  });
export const valueColumns = () =>
  new Columns<ValueKey>({ t: Float64Array, lane: Uint32Array, point: Uint16Array, v: Float64Array });
export const packetColumns = () =>
  new Columns<PacketKey>({
    t: Float64Array,
    lane: Uint32Array,
    point: Uint16Array,
    msg: Uint32Array,
    len: Uint32Array,
    tx: Uint8Array,
    frame: Float64Array,
    bytes: Uint32Array,
  });
