// SPDX-License-Identifier: Apache-2.0
// Raw bytes and the fields found in them. A decoder walks a Cursor and names what it reads; what it cannot read it leaves as a
// note, it never throws: bytes in a trace may be cut short.

export interface Field {
  /** Heading under which the field is listed: "BTH", "control segment". */
  group: string;
  name: string;
  value: string;
  /** Bytes [at, at + length) of the record that hold the field. */
  at: number;
  length: number;
  note?: string;
}

export interface Decoded {
  title: string;
  fields: Field[];
  /** What is wrong with the bytes. */
  problems: string[];
  /** Set when the trace holds the head of the record only. */
  cut: boolean;
}

export function hex(value: number | bigint, digits = 0): string {
  return `0x${value.toString(16).padStart(digits, '0')}`;
}

export class Cursor {
  at = 0;
  group = '';
  readonly fields: Field[] = [];
  readonly problems: string[] = [];
  cut = false;
  constructor(readonly bytes: Uint8Array) {}

  get left(): number {
    return this.bytes.length - this.at;
  }
  /** Begins a group of `size` bytes; false (and a problem) if they are not all there. */
  begin(group: string, size: number): boolean {
    this.group = group;
    if (this.left >= size) return true;
    this.problems.push(`${group}: ${size} bytes expected at offset ${this.at}, ${this.left} there`);
    return false;
  }
  /** Big-endian unsigned number of 1 to 6 bytes at an absolute offset. */
  uint(at: number, length: number): number {
    let x = 0;
    for (let i = 0; i < length; ++i) x = x * 256 + (this.bytes[at + i] ?? 0);
    return x;
  }
  uint64(at: number): bigint {
    return (BigInt(this.uint(at, 4)) << 32n) | BigInt(this.uint(at + 4, 4));
  }
  /** Names a field whose bytes are at an absolute offset. */
  field(name: string, at: number, length: number, value: string, note?: string): void {
    this.fields.push({ group: this.group, name, value, at, length, ...(note ? { note } : {}) });
  }
  number(name: string, at: number, length: number, show: 'dec' | 'hex' = 'dec', note?: string): number {
    const v = this.uint(at, length);
    this.field(name, at, length, show === 'hex' ? hex(v, 2 * length) : String(v), note);
    return v;
  }
  number64(name: string, at: number): bigint {
    const v = this.uint64(at);
    this.field(name, at, 8, hex(v, 16));
    return v;
  }
  rest(name: string): void {
    if (this.left <= 0) return;
    this.field(name, this.at, this.left, `${this.left} bytes`);
    this.at = this.bytes.length;
  }
  done(title: string): Decoded {
    return { title, fields: this.fields, problems: this.problems, cut: this.cut };
  }
}
