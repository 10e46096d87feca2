// SPDX-License-Identifier: Apache-2.0
// Reads one line of compact JSON from bytes, value by value, without making strings of numbers or of keys seen before. It expects
// no blanks, as our writers write none; anything else is an error that the caller reports with its line.

export class ScanError extends Error {}

export class Scanner {
  buffer: Uint8Array = new Uint8Array(0);
  p = 0;
  end = 0;
  private readonly names = new Map<number, { text: string; bytes: Uint8Array }>();
  private readonly decoder = new TextDecoder();
  private readonly encoder = new TextEncoder();

  set(buffer: Uint8Array, from: number, to: number): void {
    this.buffer = buffer;
    this.p = from;
    this.end = to;
  }

  peek(): number {
    return this.p < this.end ? this.buffer[this.p] : -1;
  }
  /** Consumes the byte `c` or fails. */
  expect(c: number): void {
    if (this.p >= this.end || this.buffer[this.p] !== c) this.fail(`'${String.fromCharCode(c)}' expected`);
    this.p++;
  }
  /** Consumes the byte `c` if it is next. */
  take(c: number): boolean {
    if (this.p >= this.end || this.buffer[this.p] !== c) return false;
    this.p++;
    return true;
  }
  fail(what: string): never {
    throw new ScanError(`${what} at column ${this.p + 1 - this.lineStart}`);
  }
  lineStart = 0;

  /** A number of at most 15 digits exactly; longer ones as their 64-bit signed value. */
  integer(): number {
    const b = this.buffer;
    let p = this.p;
    const negative = b[p] === 45;
    if (negative) ++p;
    const first = p;
    let x = 0;
    while (p < this.end) {
      const d = b[p] - 48;
      if (d < 0 || d > 9) break;
      x = x * 10 + d;
      ++p;
    }
    if (p === first) this.fail('number expected');
    this.p = p;
    if (p - first > 15) {
      const text = this.decoder.decode(b.subarray(first, p));
      x = Number(BigInt.asIntN(64, BigInt(text)));
    }
    return negative ? -x : x;
  }

  /** A number of microseconds with at most three decimals, as picoseconds. */
  microseconds(): number {
    let ns = this.integer() * 1000;
    if (this.take(46)) {
      let scale = 100;
      while (this.p < this.end) {
        const d = this.buffer[this.p] - 48;
        if (d < 0 || d > 9) break;
        ns += d * scale;
        scale /= 10;
        this.p++;
      }
    }
    return Math.round(ns) * 1000;
  }

  /** A string. Those seen before come from a table. */
  string(): string {
    this.expect(34);
    const b = this.buffer;
    const from = this.p;
    let p = from;
    let hash = 0;
    while (p < this.end && b[p] !== 34) {
      if (b[p] === 92) return this.escaped(from);
      hash = (Math.imul(hash, 31) + b[p]) | 0;
      ++p;
    }
    if (p >= this.end) this.fail('string without an end');
    this.p = p + 1;
    const length = p - from;
    const known = this.names.get(hash);
    if (known !== undefined && known.bytes.length === length) {
      let same = true;
      for (let i = 0; i < length; ++i) {
        if (known.bytes[i] !== b[from + i]) {
          same = false;
          break;
        }
      }
      if (same) return known.text;
    }
    const text = this.decoder.decode(b.subarray(from, p));
    if (known === undefined && this.names.size < 65536) this.names.set(hash, { text, bytes: this.encoder.encode(text) });
    return text;
  }

  private escaped(from: number): string {
    let p = from;
    while (p < this.end && this.buffer[p] !== 34) p += this.buffer[p] === 92 ? 2 : 1;
    if (p >= this.end) this.fail('string without an end');
    this.p = p + 1;
    return JSON.parse(this.decoder.decode(this.buffer.subarray(from - 1, p + 1))) as string;
  }

  /** true or false. */
  boolean(): boolean {
    const yes = this.peek() === 116;
    if (!yes && this.peek() !== 102) this.fail('true or false expected');
    this.p += yes ? 4 : 5;
    return yes;
  }

  /** Skips any scalar. */
  skip(): void {
    const c = this.peek();
    if (c === 34) this.string();
    else if (c === 116 || c === 102) this.boolean();
    else if (c === 123 || c === 91) this.fail('a nested value that is not known');
    else {
      this.integer();
      if (this.take(46)) this.integer();
    }
  }
}
