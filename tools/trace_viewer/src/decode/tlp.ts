// SPDX-License-Identifier: Apache-2.0
// Headers of PCI Express transaction layer packets (PCI Express Base Specification, chapter 2.2): three or four double words, big
// endian, then data. Framing, sequence number and LCRC are not part of the bytes.
import type { Decoded } from './bytes';
import { Cursor, hex } from './bytes';

const kStatus: Record<number, string> = { 0: 'SC', 1: 'UR', 2: 'CRS', 4: 'CA' };

function typeName(fmt: number, type: number): string {
  const data = (fmt & 2) !== 0;
  switch (type) {
    case 0x00:
      return data ? 'MWr' : 'MRd';
    case 0x01:
      return 'MRdLk';
    case 0x02:
      return data ? 'IOWr' : 'IORd';
    case 0x04:
      return data ? 'CfgWr0' : 'CfgRd0';
    case 0x05:
      return data ? 'CfgWr1' : 'CfgRd1';
    case 0x0a:
      return data ? 'CplD' : 'Cpl';
    case 0x0c:
      return 'FetchAdd';
    case 0x0d:
      return 'Swap';
    case 0x0e:
      return 'CAS';
    default:
      return (type & 0x18) === 0x10 ? (data ? 'MsgD' : 'Msg') : `type ${hex(type, 2)}`;
  }
}

export function decodeTlp(bytes: Uint8Array): Decoded {
  const c = new Cursor(bytes);
  if (!c.begin('TLP header', 12)) return c.done('TLP');
  const fmt = bytes[0] >> 5;
  const type = bytes[0] & 0x1f;
  const name = typeName(fmt, type);
  const long = (fmt & 1) !== 0;
  const data = (fmt & 2) !== 0;
  const dwords = c.uint(2, 2) & 0x3ff || 1024;
  c.field('Fmt, Type', 0, 1, `${fmt}, ${hex(type, 2)}`, name);
  c.field('TC', 1, 1, String((bytes[1] >> 4) & 7));
  c.field('TD, EP', 2, 1, `${bytes[2] >> 7}, ${(bytes[2] >> 6) & 1}`);
  c.field('Attr', 2, 1, `${bytes[2] & 0x20 ? 'relaxed ordering' : '–'}, ${bytes[2] & 0x10 ? 'no snoop' : '–'}`);
  c.field('Length', 2, 2, `${dwords} double words`);
  if (type === 0x0a) completion(c);
  else request(c, long, type);
  c.at = long ? 16 : 12;
  if (long && bytes.length < 16) c.problems.push('the header is cut short');
  if (data) {
    c.group = 'data';
    const have = Math.max(0, Math.min(c.left, dwords * 4));
    if (have > 0) c.field('data', c.at, have, `${dwords * 4} bytes`);
    c.cut = have < dwords * 4;
  }
  return c.done(`${name}, ${dwords * 4} bytes`);
}

function request(c: Cursor, long: boolean, type: number): void {
  c.field('Requester ID', 4, 2, bdf(c.uint(4, 2)));
  c.number('Tag', 6, 1);
  if ((type & 0x18) === 0x10) {
    c.number('Message code', 7, 1, 'hex');
    return;
  }
  const enables = c.uint(7, 1);
  c.field(
    'byte enables last, first',
    7,
    1,
    `${(enables >> 4).toString(2).padStart(4, '0')}, ${(enables & 15).toString(2).padStart(4, '0')}`,
  );
  if (long) c.field('Address', 8, 8, hex(c.uint64(8) & ~3n, 16));
  else c.field('Address', 8, 4, hex((c.uint(8, 4) & ~3) >>> 0, 8));
}

function completion(c: Cursor): void {
  c.field('Completer ID', 4, 2, bdf(c.uint(4, 2)));
  const status = c.uint(6, 1) >> 5;
  c.field('Status', 6, 1, kStatus[status] ?? String(status));
  c.field('Byte count', 6, 2, String(c.uint(6, 2) & 0xfff || 4096));
  c.field('Requester ID', 8, 2, bdf(c.uint(8, 2)));
  c.number('Tag', 10, 1);
  c.field('Lower address', 11, 1, hex(c.uint(11, 1) & 0x7f, 2));
}

function bdf(id: number): string {
  return `${(id >> 8).toString(16).padStart(2, '0')}:${((id >> 3) & 31).toString(16).padStart(2, '0')}.${id & 7}`;
}
