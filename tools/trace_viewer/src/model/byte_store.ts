// SPDX-License-Identifier: Apache-2.0
// Raw bytes of records, packed: a record holds a position, the bytes lie in pieces of one size behind their length. So millions of
// records with bytes cost what their bytes cost, and the pieces go from the worker to the page without a copy.
import type { Pieces } from './types';

const kPiece = 1 << 20;
const kHead = 4;

/** Value of a hexadecimal digit by its character code, 255 for others. */
const kDigit = (() => {
  const digits = new Uint8Array(256).fill(255);
  for (const [i, c] of [...'0123456789abcdef'].entries()) {
    digits[c.charCodeAt(0)] = i;
    digits[c.toUpperCase().charCodeAt(0)] = i;
  }
  return digits;
})();

export class ByteStore {
  readonly pieces: Pieces = [];
  private used = kPiece;
  private last = 0;

  /**
   * Keeps the bytes that text[from..to) spells in hexadecimal and returns their position; 0 for no bytes, -1 when the text spells none.
   * A record that repeats the bytes of the one before it shares them.
   */
  addHex(text: Uint8Array, from: number, to: number): number {
    const length = (to - from) / 2;
    if (length === 0) return 0;
    if (!Number.isInteger(length) || length > kPiece - kHead) return -1;
    if (this.used + kHead + length > kPiece) {
      this.pieces.push(new Uint8Array(kPiece));
      this.used = 0;
    }
    const piece = this.pieces[this.pieces.length - 1];
    const at = this.used + kHead;
    for (let i = 0; i < length; ++i) {
      const high = kDigit[text[from + 2 * i]];
      const low = kDigit[text[from + 2 * i + 1]];
      if ((high | low) > 15) return -1;
      piece[at + i] = (high << 4) | low;
    }
    const before = bytesAt(this.pieces, this.last);
    if (before && same(before, piece, at, length)) return this.last;
    for (let k = 0; k < kHead; ++k) piece[this.used + k] = (length >>> (8 * k)) & 255;
    this.last = (this.pieces.length - 1) * kPiece + this.used + 1;
    this.used = at + length;
    return this.last;
  }
}

function same(a: Uint8Array, b: Uint8Array, at: number, length: number): boolean {
  if (a.length !== length) return false;
  for (let i = 0; i < length; ++i) if (a[i] !== b[at + i]) return false;
  return true;
}

/** The bytes at a position; null where there are none. */
export function bytesAt(pieces: Pieces, position: number): Uint8Array | null {
  if (position === 0) return null;
  const piece = pieces[Math.floor((position - 1) / kPiece)];
  const at = (position - 1) % kPiece;
  let length = 0;
  for (let k = 0; k < kHead; ++k) length += piece[at + k] * 2 ** (8 * k);
  return piece.subarray(at + kHead, at + kHead + length);
}
