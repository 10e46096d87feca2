// SPDX-License-Identifier: Apache-2.0
// Completion and event queue entries of mlx5, 64 bytes each; a CQE of 128 bytes carries its data in the first half. Layouts:
// struct mlx5_cqe64 and mlx5_err_cqe of <infiniband/mlx5dv.h>, struct mlx5_eqe of linux/mlx5/device.h. Big endian.
import type { Decoded } from './bytes';
import { Cursor, hex } from './bytes';
import { kCqeOpcode, kCqeSyndrome, kEventType, kMlx5Opcode } from './values';

export function decodeCqe(bytes: Uint8Array): Decoded {
  const c = new Cursor(bytes);
  const o = bytes.length >= 128 ? 64 : 0;
  if (o > 0) {
    c.group = 'first half';
    c.field('scattered data', 0, 64, '64 bytes');
    c.at = 64;
  }
  if (!c.begin('CQE', 64)) return c.done('CQE');
  const tail = c.uint(o + 63, 1);
  const opcode = tail >> 4;
  const error = opcode === 13 || opcode === 14;
  c.field('opcode', o + 63, 1, kCqeOpcode[opcode] ?? hex(opcode), `bits 7:4 of ${hex(tail, 2)}`);
  c.field('format, SE, owner', o + 63, 1, `${(tail >> 2) & 3}, ${(tail >> 1) & 1}, ${tail & 1}`);
  c.number('WQE counter', o + 60, 2);
  c.number('signature', o + 62, 1, 'hex');
  const qpn = c.uint(o + 57, 3);
  const sent = c.uint(o + 56, 1);
  if (opcode === 0 || opcode === 13) c.field('WQE opcode', o + 56, 1, kMlx5Opcode[sent] ?? hex(sent, 2), hex(sent, 2));
  c.field('QP number', o + 57, 3, String(qpn));
  if (error) {
    const syndrome = c.uint(o + 55, 1);
    c.field('syndrome', o + 55, 1, kCqeSyndrome[syndrome] ?? hex(syndrome, 2), hex(syndrome, 2));
    c.number('vendor error syndrome', o + 54, 1, 'hex');
    c.number('SRQ number', o + 32, 4);
  } else {
    c.number('byte count', o + 44, 4);
    c.number64('timestamp', o + 48);
    c.number('immediate, key or P_Key', o + 36, 4, 'hex');
    c.field('SRQ number', o + 33, 3, String(c.uint(o + 33, 3)));
    c.field('remote QP', o + 25, 3, String(c.uint(o + 25, 3)));
    c.number('source LID', o + 22, 2);
    c.field('GRH, SL', o + 24, 1, `${(c.uint(o + 24, 1) >> 4) & 3}, ${c.uint(o + 24, 1) & 15}`);
    const format = (tail >> 2) & 3;
    if (format === 1) c.field('scattered data', o, 32, '32 bytes, in this half');
    if (format === 2) c.field('scattered data', 0, 64, '64 bytes, in the first half');
  }
  const what = error ? ` ${kCqeSyndrome[c.uint(o + 55, 1)] ?? ''}` : '';
  return c.done(`CQE ${kCqeOpcode[opcode] ?? opcode}${what} of QP ${qpn}`);
}

export function decodeEqe(bytes: Uint8Array): Decoded {
  const c = new Cursor(bytes);
  if (!c.begin('EQE', 64)) return c.done('EQE');
  const type = c.uint(1, 1);
  c.field('type', 1, 1, kEventType[type] ?? hex(type, 2), hex(type, 2));
  c.number('sub type', 3, 1);
  switch (type) {
    case 0x00:
      c.field('CQ number', 57, 3, String(c.uint(57, 3)));
      break;
    case 0x04:
      c.field('CQ number', 33, 3, String(c.uint(33, 3)));
      c.field('syndrome', 43, 1, ['–', 'overrun', 'access'][c.uint(43, 1)] ?? hex(c.uint(43, 1)));
      break;
    case 0x0a:
      c.number('command slots', 32, 4, 'hex');
      break;
    case 0x09:
      c.field('port', 40, 1, String(c.uint(40, 1) >> 4));
      break;
    case 0x0b:
      c.number('function id', 34, 2);
      c.field('pages', 36, 4, String(c.uint(36, 4) | 0));
      break;
    case 0x12:
    case 0x13:
    case 0x14:
      c.field(type === 0x13 ? 'QP or SRQ number' : 'SRQ number', 57, 3, String(c.uint(57, 3)));
      break;
    default:
      c.field('queue kind', 52, 1, ['QP', 'RQ', 'SQ'][c.uint(52, 1)] ?? String(c.uint(52, 1)));
      c.field('QP number', 57, 3, String(c.uint(57, 3)));
  }
  c.number('signature', 62, 1, 'hex');
  c.field('owner', 63, 1, String(c.uint(63, 1) & 1));
  return c.done(`EQE ${kEventType[type] ?? hex(type, 2)}`);
}
