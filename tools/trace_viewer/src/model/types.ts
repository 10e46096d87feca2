// SPDX-License-Identifier: Apache-2.0
// The trace in memory: plain objects and typed arrays, so that a worker can hand it over without copying. Times are
// picoseconds. Records of a kind lie in columns, sorted as their comment says. Nothing here computes.

export type LaneKind = 'exclusive' | 'pipelined' | 'counter' | 'state' | 'instant';
export type RecordKind = 'span' | 'instant' | 'counter' | 'state' | 'packet';
export type Mark = 'warning' | 'error';
/** What the raw bytes of a record are. */
export type BytesKind = 'frame' | 'wqe' | 'rwqe' | 'cqe' | 'eqe' | 'tlp';

export interface Lane {
  id: number;
  /** Index into hosts; -1 is the fabric. */
  host: number;
  path: string;
  kind: LaneKind;
  /** Names of state values. */
  states: string[];
}

export interface Point {
  id: number;
  name: string;
  cat: string;
  kind: RecordKind;
  /** Names of the numbers a0…a3. */
  args: string[];
  /** Set when records of this point may carry raw bytes. */
  bytes: BytesKind | null;
  /** What a record of this point tells of: trouble, or null. */
  mark: Mark | null;
  /** The mark holds only where this argument is not zero; -1: always. */
  markIf: number;
}

export interface Header {
  format: string;
  version: string;
  scenario: string;
  seed: number;
  hosts: string[];
  stages: string[];
  config: unknown;
}

/** Something that the reader has to be told about the file. */
export interface Diagnostic {
  severity: 'error' | 'warning' | 'note';
  text: string;
}

/** Raw bytes of all records, in pieces of one size; byte_store.ts reads them. */
export type Pieces = Uint8Array[];

/** Sorted by (row, start). A row is a lane's slot: spans in a row do not overlap, but for the last slot of a crowded lane. */
export interface Spans {
  n: number;
  id: Uint32Array;
  start: Float64Array;
  dur: Float64Array;
  wait: Float64Array;
  lane: Uint32Array;
  point: Uint16Array;
  msg: Uint32Array;
  /** Span id of the cause, 0 = none known. */
  parent: Uint32Array;
  args: Float64Array[];
  /** Position in the trace's `pieces`, 0 = none. */
  bytes: Uint32Array;
}

/** Sorted by (lane, t). */
export interface Instants {
  n: number;
  t: Float64Array;
  lane: Uint32Array;
  point: Uint16Array;
  msg: Uint32Array;
  parent: Uint32Array;
  args: Float64Array[];
  /** Position in the trace's `pieces`, 0 = none. */
  bytes: Uint32Array;
}

/** Sorted by (lane, t). */
export interface Packets {
  n: number;
  t: Float64Array;
  lane: Uint32Array;
  point: Uint16Array;
  msg: Uint32Array;
  len: Uint32Array;
  tx: Uint8Array;
  /** The same number at both ends of a cable; 0 = unknown. */
  frame: Float64Array;
  bytes: Uint32Array;
}

/** Counters and states: sorted by (series, t). */
export interface Values {
  n: number;
  t: Float64Array;
  v: Float64Array;
  series: Series[];
}
/** All values of one point on one lane. */
export interface Series {
  lane: number;
  point: number;
  from: number;
  to: number;
  max: number;
  min: number;
}

/** A drawing row of spans: slot `slot` of lane `lane`, spans from..to. */
export interface Rows {
  n: number;
  lane: Uint32Array;
  slot: Uint8Array;
  /** n + 1 entries. */
  offset: Uint32Array;
}

/** Level k of the pyramid over spans: blocks of kFanout entries of the level below, never across rows. */
export interface LodLevel {
  t0: Float64Array;
  t1: Float64Array;
  busy: Float32Array;
  /** Point of the longest span. */
  point: Uint16Array;
  longest: Float32Array;
  /** First block of each row; rows + 1 entries. */
  offset: Uint32Array;
}

/** Statuses of messages beyond enum ibv_wc_status: what no completion tells. */
export const kLost = 254;
export const kUnderWay = 255;

export const enum Status {
  ok = 0,
  /** The trace ends before the message does, or its chain of records is incomplete. */
  unfinished = 1,
  error = 2,
}

/** Finished messages in the order of their ids, then those of which only spans are known. */
export interface Messages {
  n: number;
  id: Uint32Array;
  t: Float64Array;
  /** NaN when the message has not finished; of one that failed, until its completion was polled or the run ended. */
  total: Float64Array;
  flow: Uint32Array;
  /** The application's number of the work request; null when the file does not tell. */
  wrId: Float64Array | null;
  op: Uint8Array;
  bytes: Float64Array;
  /** -1 when unknown. */
  qpn: Int32Array;
  psn: Int32Array;
  /** Host that posted it, -1 when unknown. */
  host: Int8Array;
  status: Uint8Array;
  /** enum ibv_wc_status: from the file, or from the syndrome of the error completion; kLost, kUnderWay. */
  wcStatus: Uint8Array;
  /** One column per stage; empty when the file has no stages. */
  stages: Float64Array[];
}

/** Compressed index: entries of key k are list[offset[k] .. offset[k+1]). */
export interface Csr {
  offset: Uint32Array;
  list: Uint32Array;
}

export interface Trace {
  name: string;
  header: Header;
  lanes: Lane[];
  points: Point[];
  spans: Spans;
  rows: Rows;
  lod: LodLevel[];
  /** Span index by id; kNone where there is none. */
  byId: Uint32Array;
  instants: Instants;
  instantOffset: Uint32Array;
  packets: Packets;
  packetOffset: Uint32Array;
  pieces: Pieces;
  counters: Values;
  states: Values;
  messages: Messages;
  /** Message row by id; kNone where there is none. */
  messageRow: Uint32Array;
  spansOf: Csr;
  instantsOf: Csr;
  packetsOf: Csr;
  /** First and last time of any record. */
  t0: number;
  t1: number;
  /** The file ended with its end record. */
  complete: boolean;
  /** Times are multiples of this many ps. */
  resolution: number;
  diagnostics: Diagnostic[];
  bytesRead: number;
}

export const kNone = 0xffffffff;
