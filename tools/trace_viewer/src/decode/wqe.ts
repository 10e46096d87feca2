// SPDX-License-Identifier: Apache-2.0
// Work queue entries of mlx5: send WQEs as segments of 16 bytes behind a control segment, receive WQEs as lists of data segments.
// Layouts: <infiniband/mlx5dv.h>. All fields are big endian.
import type { Decoded } from './bytes';
import { Cursor, hex } from './bytes';
import { kMlx5Opcode } from './values';

const kInline = 0x80000000;
const kInvalidLkey = 0x100;

export function decodeWqe(bytes: Uint8Array): Decoded {
  const c = new Cursor(bytes);
  if (!c.begin('control segment', 16)) return c.done('WQE');
  const opcode = c.uint(3, 1);
  c.field('opmod', 0, 1, hex(c.uint(0, 1), 2));
  c.number('WQE index', 1, 2);
  c.field('opcode', 3, 1, kMlx5Opcode[opcode] ?? hex(opcode, 2), hex(opcode, 2));
  const qpn = c.number('QP number', 4, 3);
  const ds = c.uint(7, 1) & 0x3f;
  c.field('DS', 7, 1, `${ds} × 16 bytes`);
  c.number('signature', 8, 1, 'hex');
  c.number('stream channel', 9, 2);
  const flags = c.uint(11, 1);
  c.field('FM, CE, SE', 11, 1, `${fence(flags >> 5)}, ${completion((flags >> 2) & 3)}, ${(flags >> 1) & 1 ? 'solicited' : '–'}`);
  c.number('immediate or key', 12, 4, 'hex');
  c.at = 16;
  segments(c, opcode, Math.min(ds * 16, bytes.length));
  c.cut = ds * 16 > bytes.length;
  return c.done(`${kMlx5Opcode[opcode] ?? 'WQE'} WQE of QP ${qpn}, index ${c.uint(1, 2)}`);
}

function segments(c: Cursor, opcode: number, end: number): void {
  switch (opcode) {
    case 0x08:
    case 0x09:
    case 0x10:
      if (!remoteAddress(c)) return;
      break;
    case 0x11:
    case 0x12:
      if (!remoteAddress(c) || !atomic(c)) return;
      break;
    case 0x25:
      umr(c, end);
      return;
    case 0x00:
      return;
  }
  // A datagram segment is told by its extension bit, which no data segment has at that place: an address vector has 48 bytes.
  if ((opcode === 0x0a || opcode === 0x0b) && end - c.at >= 48 && c.uint(c.at + 8, 4) >= kInline && c.uint(c.at + 4, 4) === 0) {
    if (!datagram(c)) return;
  }
  dataSegments(c, end);
}

function remoteAddress(c: Cursor): boolean {
  if (!c.begin('remote address segment', 16)) return false;
  c.number64('remote address', c.at);
  c.number('R_Key', c.at + 8, 4, 'hex');
  c.at += 16;
  return true;
}

function atomic(c: Cursor): boolean {
  if (!c.begin('atomic segment', 16)) return false;
  c.number64('swap or add', c.at);
  c.number64('compare', c.at + 8);
  c.at += 16;
  return true;
}

function datagram(c: Cursor): boolean {
  if (!c.begin('datagram segment', 48)) return false;
  const o = c.at;
  c.number('Q_Key', o, 4, 'hex');
  c.field('destination QP', o + 8, 4, String(c.uint(o + 8, 4) & 0xffffff), 'extended');
  c.number('static rate, SL', o + 12, 1, 'hex');
  c.number('MLID or flow', o + 13, 1, 'hex');
  c.number('remote LID or UDP port', o + 14, 2);
  c.field(
    'remote MAC',
    o + 20,
    6,
    Array.from(c.bytes.subarray(o + 20, o + 26), (b) => b.toString(16).padStart(2, '0')).join(':'),
  );
  c.number('traffic class', o + 26, 1);
  c.number('hop limit', o + 27, 1);
  c.number('GRH, GID index, flow label', o + 28, 4, 'hex');
  c.field('remote GID', o + 32, 16, Array.from({ length: 8 }, (_, i) => c.uint(o + 32 + 2 * i, 2).toString(16)).join(':'));
  c.at += 48;
  return true;
}

function umr(c: Cursor, end: number): void {
  if (!c.begin('UMR control segment', 48)) return;
  c.number('flags', c.at, 1, 'hex');
  c.number('KLM octowords', c.at + 4, 2);
  c.number('translation offset', c.at + 6, 2);
  c.number64('mkey mask', c.at + 8);
  c.at += 48;
  if (end <= c.at || !c.begin('memory key context', 64)) return;
  c.number('free', c.at, 1, 'hex');
  c.number('access flags', c.at + 2, 1, 'hex');
  c.number('QPN, variant', c.at + 4, 4, 'hex');
  c.number('flags, PD', c.at + 12, 4, 'hex');
  c.number64('start address', c.at + 16);
  c.number64('length', c.at + 24);
  c.number('translations', c.at + 52, 4);
  c.number('log page size', c.at + 63, 1);
  c.at += 64;
  for (let i = 0; end - c.at >= 16; ++i) {
    c.group = `KLM ${i}`;
    c.number('byte count', c.at, 4);
    c.number('key', c.at + 4, 4, 'hex');
    c.number64('address', c.at + 8);
    c.at += 16;
  }
}

function dataSegments(c: Cursor, end: number): void {
  for (let i = 0; end - c.at >= 16; ++i) {
    const count = c.uint(c.at, 4);
    if (count >= kInline) {
      const length = count - kInline;
      c.group = `inline data ${i}`;
      c.field('byte count', c.at, 4, String(length), 'inline');
      if (length > 0) c.field('data', c.at + 4, Math.min(length, end - c.at - 4), `${length} bytes`);
      if (4 + length > end - c.at) c.problems.push(`inline data of ${length} bytes does not fit the WQE`);
      c.at += Math.ceil((4 + length) / 16) * 16;
      continue;
    }
    c.group = `data segment ${i}`;
    c.field('byte count', c.at, 4, count === 0 ? '0 (means 2 GiB)' : String(count));
    const lkey = c.number('L_Key', c.at + 4, 4, 'hex');
    c.number64('address', c.at + 8);
    c.at += 16;
    if (lkey === kInvalidLkey) {
      c.fields[c.fields.length - 2].note = 'ends the list';
      break;
    }
  }
}

/** A receive WQE: data segments only. */
export function decodeReceiveWqe(bytes: Uint8Array): Decoded {
  const c = new Cursor(bytes);
  dataSegments(c, bytes.length);
  return c.done('receive WQE');
}

function fence(mode: number): string {
  return ['no fence', 'initiator small fence', 'fence 2', 'strong ordering', 'fence'][mode] ?? `fence ${mode}`;
}
function completion(mode: number): string {
  return ['CQE on error', 'CQE on first error', 'signaled', 'CQE and EQE'][mode];
}
