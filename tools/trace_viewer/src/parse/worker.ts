// SPDX-License-Identifier: Apache-2.0
// The worker: loads one trace and hands its arrays over without copying them.
import { loadTrace } from './load';
import type { Trace } from '../model/types';

export type Request = { name: string; blob: Blob };
export type Reply =
  | { kind: 'progress'; done: number; text: string }
  | { kind: 'trace'; trace: Trace; ms: number }
  | { kind: 'error'; text: string };

const scope = self as unknown as Worker;

scope.onmessage = async (event: MessageEvent<Request>) => {
  const { name, blob } = event.data;
  const begun = performance.now();
  try {
    const trace = await loadTrace({ name, size: blob.size, stream: blob.stream() }, (done, text) =>
      scope.postMessage({ kind: 'progress', done, text } satisfies Reply),
    );
    const reply: Reply = { kind: 'trace', trace, ms: performance.now() - begun };
    scope.postMessage(reply, buffersOf(trace));
  } catch (e) {
    scope.postMessage({ kind: 'error', text: (e as Error).message } satisfies Reply);
  }
};

function buffersOf(value: unknown, found = new Set<ArrayBuffer>()): ArrayBuffer[] {
  if (ArrayBuffer.isView(value)) found.add(value.buffer as ArrayBuffer);
  else if (Array.isArray(value)) {
    if (typeof value[0] === 'object') for (const v of value) buffersOf(v, found);
  } else if (typeof value === 'object' && value !== null && !(value instanceof Map)) {
    for (const v of Object.values(value)) buffersOf(v, found);
  }
  return [...found];
}
