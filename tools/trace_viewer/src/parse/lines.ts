// SPDX-License-Identifier: Apache-2.0
// Cuts a byte stream into lines without copying those that lie within one chunk. Knows nothing of what lines mean.

/** A line is buffer[from .. to), without its newline. `offset` is the position of its first byte in the stream. */
export interface LineSink {
  line(buffer: Uint8Array, from: number, to: number, number: number, offset: number): void;
  /** What follows the last newline, if anything. */
  rest(buffer: Uint8Array, number: number, offset: number): void;
}

/** No line of a trace is near this long; a file without newlines is no trace. */
export const kLongestLine = 64 << 20;

export class LineTooLong extends Error {}

export class LineCutter {
  private pieces: Uint8Array[] = [];
  private held = 0;
  private number = 1;
  private offset = 0;

  constructor(private readonly sink: LineSink) {}

  chunk(buffer: Uint8Array): void {
    let from = 0;
    if (this.held > 0) {
      const newline = buffer.indexOf(10);
      if (newline < 0) {
        this.hold(buffer);
        return;
      }
      this.pieces.push(buffer.subarray(0, newline));
      const line = join(this.pieces, this.held + newline);
      this.pieces = [];
      this.held = 0;
      this.emit(line, 0, line.length);
      from = newline + 1;
    }
    for (;;) {
      const newline = buffer.indexOf(10, from);
      if (newline < 0) break;
      this.emit(buffer, from, newline);
      from = newline + 1;
    }
    if (from < buffer.length) this.hold(buffer.slice(from));
  }

  end(): void {
    if (this.held === 0) return;
    this.sink.rest(join(this.pieces, this.held), this.number, this.offset);
  }

  private emit(buffer: Uint8Array, from: number, to: number): void {
    this.sink.line(buffer, from, to, this.number++, this.offset);
    this.offset += to - from + 1;
  }
  private hold(piece: Uint8Array): void {
    this.pieces.push(piece);
    this.held += piece.length;
    if (this.held > kLongestLine) throw new LineTooLong(`line ${this.number} is longer than ${kLongestLine >> 20} MiB`);
  }
}

function join(pieces: Uint8Array[], length: number): Uint8Array {
  if (pieces.length === 1) return pieces[0];
  const out = new Uint8Array(length);
  let at = 0;
  for (const p of pieces) {
    out.set(p, at);
    at += p.length;
  }
  return out;
}
