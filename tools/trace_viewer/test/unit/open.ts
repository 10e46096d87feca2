// SPDX-License-Identifier: Apache-2.0
// Helpers of the unit tests: opens text or bytes as a trace, in chunks of any size.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Trace } from '../../src/model/types';
import { loadTrace } from '../../src/parse/load';

export function open(data: string | Uint8Array, chunk = 1 << 16, name = 'test'): Promise<Trace> {
  const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data;
  let at = 0;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + chunk));
      at += chunk;
    },
  });
  return loadTrace({ name, size: bytes.length, stream });
}

export function fixture(name: string): Uint8Array {
  return new Uint8Array(readFileSync(fileURLToPath(new URL(`../data/${name}`, import.meta.url))));
}

/** A native trace of handmade records: lines as objects. */
export function lines(...values: unknown[]): string {
  return values.map((v) => `${typeof v === 'string' ? v : JSON.stringify(v)}\n`).join('');
}

export const kHeader = {
  format: 'rdmasim-cols/1',
  time: 'ps',
  version: '1',
  scenario: 's',
  seed: 1,
  hosts: ['host0', 'host1'],
  stages: ['post', 'wire', 'poll'],
  lanes: [
    { id: 0, host: 0, path: 'host0.cpu0', kind: 'pipelined' },
    { id: 1, host: 1, path: 'host1.hca.rx', kind: 'pipelined' },
    { id: 2, host: -1, path: 'fabric.a', kind: 'pipelined' },
    { id: 3, host: 0, path: 'host0.hca.completions', kind: 'pipelined' },
  ],
  config: null,
};

/** Where a trace's spans are, by id. */
export function spanById(t: Trace, id: number): number {
  return t.byId[id];
}

/** The last line of a native trace, with `more` counts than those of spans. */
export const kEnd = (spans: number, more = {}) => ({
  k: 'end',
  spans,
  instants: 0,
  counters: 0,
  states: 0,
  packets: 0,
  messages: 0,
  t_end: 0,
  ...more,
});
/** A declaration of a point. */
export const point = (id: number, name: string, args: string[] = [], kind = 'span') => ({
  k: 'point',
  id,
  name,
  cat: name.split('.')[0],
  kind,
  args,
});
