// SPDX-License-Identifier: Apache-2.0
// Opens a stream of bytes as a trace: unpacks gzip, tells the format by its first bytes, parses and indexes. Runs in the worker
// and in tests; no DOM.
import { Builder } from '../model/builder';
import { buildTrace } from '../model/index';
import type { Trace } from '../model/types';
import { ChromeParser } from './chrome';
import { LineCutter } from './lines';
import { kNativeFormat, NativeParser } from './native';

export interface Source {
  name: string;
  /** Bytes in the stream, for the progress; 0 when unknown. */
  size: number;
  stream: ReadableStream<Uint8Array>;
}
/** `done` of 1; `text` says what is going on. */
export type Progress = (done: number, text: string) => void;

/** The input is no trace that this viewer reads. */
export class NotATrace extends Error {}

export async function loadTrace(source: Source, progress: Progress = () => {}): Promise<Trace> {
  const builder = new Builder();
  const input = source.stream.getReader();
  const first = await atLeast(input, 2);
  if (first.length === 0) throw new NotATrace(`${source.name} is empty (0 bytes)`);
  const gzip = first[0] === 0x1f && first[1] === 0x8b;
  let read = 0;
  const counted = restream(first, input, (n) => (read += n));
  const plain = gzip
    ? counted.pipeThrough(new DecompressionStream('gzip') as unknown as TransformStream<Uint8Array, Uint8Array>)
    : counted;
  const reader = plain.getReader();
  let parser: NativeParser | ChromeParser | null = null;
  let cutter: LineCutter | null = null;
  let told = 0;
  let total = 0;
  try {
    for (;;) {
      const { done, value } = parser ? await reader.read() : { done: false, value: await atLeast(reader, 200) };
      if (done) break;
      if (!parser) {
        if (value!.length === 0) throw new NotATrace(`${source.name} holds nothing`);
        parser = choose(value!, source.name, builder);
        cutter = new LineCutter(parser);
      }
      total += value!.length;
      if (value!.length > 0) cutter!.chunk(value!);
      else break;
      if (read - told > 4 << 20) {
        if (told === 0 && source.size > 0) builder.expectRest(read / source.size);
        told = read;
        progress(
          source.size > 0 ? 0.9 * Math.min(1, read / source.size) : 0.5,
          `${builder.records.toLocaleString('en')} records`,
        );
      }
    }
  } catch (e) {
    if (!parser || !gzip || !builder.records) throw wrap(e, source.name);
    builder.say('warning', `the compressed file is damaged or cut short after ${total} unpacked bytes (${(e as Error).message})`);
  }
  try {
    cutter!.end();
  } catch (e) {
    throw wrap(e, source.name);
  }
  parser!.finish();
  progress(0.92, 'sorting and indexing');
  return buildTrace(builder, source.name, total);
}

function wrap(e: unknown, name: string): Error {
  return e instanceof NotATrace ? e : new NotATrace(`${name}: ${(e as Error).message}`);
}

/** Reads until there are n bytes or the stream ends. */
async function atLeast(reader: ReadableStreamDefaultReader<Uint8Array>, n: number): Promise<Uint8Array> {
  let have = new Uint8Array(0);
  while (have.length < n) {
    const { done, value } = await reader.read();
    if (done) break;
    const more = new Uint8Array(have.length + value.length);
    more.set(have);
    more.set(value, have.length);
    have = more;
  }
  return have;
}

function restream(
  first: Uint8Array,
  rest: ReadableStreamDefaultReader<Uint8Array>,
  count: (n: number) => void,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let begun = false;
  return new ReadableStream({
    async pull(controller) {
      const next = begun ? await rest.read() : { done: false, value: first };
      begun = true;
      if (next.done) controller.close();
      else {
        count(next.value!.length);
        controller.enqueue(next.value as Uint8Array<ArrayBuffer>);
      }
    },
    cancel: (reason) => rest.cancel(reason),
  });
}

function choose(head: Uint8Array, name: string, builder: Builder): NativeParser | ChromeParser {
  const text = new TextDecoder().decode(head.subarray(0, 400));
  if (text.startsWith('{"format":"')) {
    if (text.startsWith(`{"format":"${kNativeFormat}"`)) return new NativeParser(builder);
    const format = text.slice(11, 60).split('"')[0];
    throw new NotATrace(`${name} has the format “${format}”; this viewer reads ${kNativeFormat} and rdmasim-chrome/1`);
  }
  if (/^\{"displayTimeUnit":"ns","otherData":\{"format":"rdmasim-chrome\/1"/.test(text)) return new ChromeParser(builder);
  if (/^\s*[[{].*"(traceEvents|ph)"/s.test(text)) {
    throw new NotATrace(
      `${name} is Chrome JSON of another program; this viewer reads that of rdmasim (rdmasim-chrome/1), one event per line`,
    );
  }
  const shown = JSON.stringify(text.slice(0, 40));
  throw new NotATrace(
    `${name} is no trace: it begins with ${shown}. Expected is a native trace (first line {"format":"${kNativeFormat}",…}) ` +
      'or Chrome JSON, both as rdmasim writes them, plain or as .gz',
  );
}
