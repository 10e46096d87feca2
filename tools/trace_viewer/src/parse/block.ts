// SPDX-License-Identifier: Apache-2.0
// Reads a block line of the native format straight from its bytes: columns of integers become Float64Arrays without the detour over
// strings and number objects. Anything out of the ordinary makes it give up (null), and the caller takes JSON.parse.

import type { ByteStore } from '../model/byte_store';

/** A column of raw bytes is one of positions in the store. */
export type Value = number | string | Float64Array | Uint32Array | string[];
export type Block = Record<string, Value>;

const text = new TextDecoder();

/** Lines that begin like this are worth the attempt. */
export function looksLikeBlock(b: Uint8Array, from: number, to: number): boolean {
  // {"k":"
  return to - from > 20 && b[from] === 123 && b[from + 2] === 107 && b[from + 5] === 34;
}

export function scanBlock(b: Uint8Array, from: number, to: number, store: ByteStore): Block | null {
  const out: Block = {};
  let p = from + 1;
  let n = 0;
  for (;;) {
    if (b[p] !== 34) return null;
    const keyEnd = b.indexOf(34, p + 1);
    if (keyEnd < 0 || keyEnd >= to || keyEnd - p > 40) return null;
    const key = text.decode(b.subarray(p + 1, keyEnd));
    if (b[keyEnd + 1] !== 58) return null;
    p = keyEnd + 2;
    if (b[p] === 91) {
      const text = b[p + 1] === 34;
      const end = !text
        ? numberColumn(b, p + 1, to, n, out, key)
        : key === 'bytes'
          ? bytesColumn(b, p + 1, to, n, out, store)
          : stringColumn(b, p, to, out, key);
      if (end < 0) return null;
      p = end;
    } else if (b[p] === 34) {
      const end = b.indexOf(34, p + 1);
      if (end < 0 || end >= to) return null;
      out[key] = text.decode(b.subarray(p + 1, end));
      if ((out[key] as string).includes('\\')) return null;
      p = end + 1;
    } else {
      const end = integerAt(b, p, to);
      if (end < 0) return null;
      out[key] = scanned;
      if (key === 'n') n = scanned;
      p = end;
    }
    if (b[p] === 44) ++p;
    else if (b[p] === 125 && p === to - 1) return out;
    else return null;
  }
}

/** Value of the last integerAt(). */
let scanned = 0;

function integerAt(b: Uint8Array, at: number, to: number): number {
  let p = at;
  const negative = b[p] === 45;
  if (negative) ++p;
  const first = p;
  let x = 0;
  for (; p < to; ++p) {
    const d = b[p] - 48;
    if (d < 0 || d > 9) break;
    x = x * 10 + d;
  }
  if (p === first || p - first > 15) return -1;
  scanned = negative ? -x : x;
  return p;
}

function numberColumn(b: Uint8Array, at: number, to: number, n: number, out: Block, key: string): number {
  const column = new Float64Array(n);
  let p = at;
  for (let i = 0; i < n; ++i) {
    let c = b[p];
    const negative = c === 45;
    if (negative) c = b[++p];
    const first = p;
    let x = c - 48;
    if (!(x >= 0 && x <= 9)) return -1;
    for (;;) {
      c = b[++p];
      const d = c - 48;
      if (!(d >= 0 && d <= 9)) break;
      x = x * 10 + d;
    }
    if (p - first > 15 || p >= to) return -1;
    column[i] = negative ? -x : x;
    if (c === 44 && i + 1 < n) ++p;
    else if (c !== 93 || i + 1 !== n) return -1;
  }
  out[key] = column;
  return n === 0 ? -1 : p + 1;
}

function bytesColumn(b: Uint8Array, at: number, to: number, n: number, out: Block, store: ByteStore): number {
  const column = new Uint32Array(n);
  let p = at;
  for (let i = 0; i < n; ++i) {
    if (b[p] !== 34) return -1;
    let end = p + 1;
    while (end < to && b[end] !== 34) ++end;
    const position = store.addHex(b, p + 1, end);
    if (position < 0) return -1;
    column[i] = position;
    p = end + 1;
    if (b[p] === 44 && i + 1 < n) ++p;
    else if (b[p] !== 93 || i + 1 !== n) return -1;
  }
  out.bytes = column;
  return n === 0 ? -1 : p + 1;
}

function stringColumn(b: Uint8Array, at: number, to: number, out: Block, key: string): number {
  const end = b.indexOf(93, at);
  if (end < 0 || end >= to) return -1;
  try {
    out[key] = JSON.parse(text.decode(b.subarray(at, end + 1))) as string[];
  } catch {
    return -1;
  }
  return end + 1;
}
