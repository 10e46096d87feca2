// SPDX-License-Identifier: Apache-2.0
// RoCEv2 frames: Ethernet, VLAN, IPv4 or IPv6, UDP, BTH and its extended headers, payload, pad, ICRC. Layouts: InfiniBand
// Architecture Specification volume 1 chapter 9 and annex A17. Without FCS. The ICRC is computed and compared when the frame is
// whole.
import type { Decoded } from './bytes';
import { Cursor, hex } from './bytes';
import { icrc } from './icrc';
import { aethName, bthOpcodeName } from './values';

const kRocePort = 4791;

/** Extended headers after the BTH, in the order of the wire. */
type Extended = 'XRCETH' | 'DETH' | 'RETH' | 'AtomicETH' | 'AETH' | 'AtomicAckETH' | 'ImmDt' | 'IETH' | 'CNP';
const kSize: Record<Extended, number> = {
  XRCETH: 4,
  DETH: 8,
  RETH: 16,
  AtomicETH: 28,
  AETH: 4,
  AtomicAckETH: 8,
  ImmDt: 4,
  IETH: 4,
  CNP: 16,
};

/** Extended headers of a BTH opcode. */
export function extendedHeaders(opcode: number): Extended[] {
  if (opcode === 0x81) return ['CNP'];
  const out: Extended[] = [];
  const operation = opcode & 0x1f;
  const request = operation <= 0x0c || operation === 0x13 || operation === 0x14 || operation === 0x16 || operation === 0x17;
  if (opcode >> 5 === 5 && request) out.push('XRCETH');
  if (opcode >> 5 === 3) out.push('DETH');
  switch (operation) {
    case 0x06:
    case 0x0a:
    case 0x0c:
      out.push('RETH');
      break;
    case 0x0b:
      out.push('RETH', 'ImmDt');
      break;
    case 0x03:
    case 0x05:
    case 0x09:
      out.push('ImmDt');
      break;
    case 0x0d:
    case 0x0f:
    case 0x10:
    case 0x11:
      out.push('AETH');
      break;
    case 0x12:
      out.push('AETH', 'AtomicAckETH');
      break;
    case 0x13:
    case 0x14:
      out.push('AtomicETH');
      break;
    case 0x16:
    case 0x17:
      out.push('IETH');
      break;
  }
  return out;
}

/** `whole`: length of the frame when the bytes are only its head; 0 = they are all of it. */
export function decodePacket(bytes: Uint8Array, whole = 0): Decoded {
  const c = new Cursor(bytes);
  const title = ethernet(c, whole > bytes.length);
  return c.done(title);
}

function ethernet(c: Cursor, cut: boolean): string {
  if (!c.begin('Ethernet', 14)) return 'frame';
  c.field('destination', 0, 6, mac(c, 0));
  c.field('source', 6, 6, mac(c, 6));
  let type = c.number('EtherType', 12, 2, 'hex');
  c.at = 14;
  if (type === 0x8100 && c.begin('VLAN', 4)) {
    const tci = c.uint(14, 2);
    c.field('priority, VLAN id', 14, 2, `${tci >> 13}, ${tci & 0xfff}`);
    type = c.number('EtherType', 16, 2, 'hex');
    c.at = 18;
  }
  const l3 = c.at;
  const protocol = type === 0x0800 ? ipv4(c) : type === 0x86dd ? ipv6(c) : -1;
  if (protocol !== 17) {
    c.group = 'payload';
    c.rest('bytes');
    return 'Ethernet frame, not RoCEv2';
  }
  return udp(c, l3, cut);
}

function ipv4(c: Cursor): number {
  if (!c.begin('IPv4', 20)) return -1;
  const o = c.at;
  const length = (c.bytes[o] & 15) * 4;
  c.field('version, header', o, 1, `${c.bytes[o] >> 4}, ${length} bytes`);
  const tos = c.uint(o + 1, 1);
  c.field('DSCP, ECN', o + 1, 1, `${tos >> 2}, ${['Not-ECT', 'ECT(1)', 'ECT(0)', 'CE'][tos & 3]}`);
  c.number('total length', o + 2, 2);
  c.number('identification', o + 4, 2);
  const fragment = c.uint(o + 6, 2);
  c.field('flags, offset', o + 6, 2, `${fragment & 0x4000 ? 'DF' : '–'}, ${fragment & 0x1fff}`);
  c.number('TTL', o + 8, 1);
  const protocol = c.number('protocol', o + 9, 1);
  let sum = 0;
  for (let i = 0; i < 20; i += 2) sum += c.uint(o + i, 2);
  sum = (sum & 0xffff) + (sum >>> 16);
  sum = (sum & 0xffff) + (sum >>> 16);
  c.field('header checksum', o + 10, 2, hex(c.uint(o + 10, 2), 4), sum === 0xffff ? 'correct' : 'wrong');
  if (sum !== 0xffff) c.problems.push('IPv4: the header checksum is wrong');
  c.field('source', o + 12, 4, Array.from(c.bytes.subarray(o + 12, o + 16)).join('.'));
  c.field('destination', o + 16, 4, Array.from(c.bytes.subarray(o + 16, o + 20)).join('.'));
  c.at = o + 20;
  return protocol;
}

function ipv6(c: Cursor): number {
  if (!c.begin('IPv6', 40)) return -1;
  const o = c.at;
  const word = c.uint(o, 4);
  c.field('version, class, flow', o, 4, `${word >>> 28}, ${(word >>> 20) & 0xff}, ${hex(word & 0xfffff, 5)}`);
  c.number('payload length', o + 4, 2);
  const next = c.number('next header', o + 6, 1);
  c.number('hop limit', o + 7, 1);
  c.field('source', o + 8, 16, gid(c, o + 8));
  c.field('destination', o + 24, 16, gid(c, o + 24));
  c.at = o + 40;
  return next;
}

function udp(c: Cursor, l3: number, cut: boolean): string {
  if (!c.begin('UDP', 8)) return 'IP packet';
  const o = c.at;
  c.number('source port', o, 2);
  const port = c.number('destination port', o + 2, 2);
  c.number('length', o + 4, 2);
  c.number('checksum', o + 6, 2, 'hex');
  c.at = o + 8;
  if (port !== kRocePort) {
    c.group = 'payload';
    c.rest('bytes');
    return 'UDP packet, not RoCEv2';
  }
  return transport(c, l3, cut);
}

function transport(c: Cursor, l3: number, cut: boolean): string {
  if (!c.begin('BTH', 12)) return 'RoCEv2 packet';
  const o = c.at;
  const opcode = c.uint(o, 1);
  c.field('opcode', o, 1, bthOpcodeName(opcode), hex(opcode, 2));
  const flags = c.uint(o + 1, 1);
  const pad = (flags >> 4) & 3;
  c.field('SE, M, pad, TVer', o + 1, 1, `${flags >> 7}, ${(flags >> 6) & 1}, ${pad}, ${flags & 15}`);
  c.number('P_Key', o + 2, 2, 'hex');
  const congestion = c.uint(o + 4, 1);
  c.field('FECN, BECN', o + 4, 1, `${congestion >> 7}, ${(congestion >> 6) & 1}`);
  const qpn = c.uint(o + 5, 3);
  c.field('destination QP', o + 5, 3, String(qpn), hex(qpn, 6));
  c.field('AckReq', o + 8, 1, String(c.uint(o + 8, 1) >> 7));
  const psn = c.number('PSN', o + 9, 3);
  c.at = o + 12;
  for (const header of extendedHeaders(opcode)) {
    if (!c.begin(header, kSize[header])) return `${bthOpcodeName(opcode)}, PSN ${psn}`;
    extended(c, header);
    c.at += kSize[header];
  }
  tail(c, l3, pad, cut);
  return `${bthOpcodeName(opcode)}, QP ${qpn}, PSN ${psn}`;
}

function extended(c: Cursor, header: Extended): void {
  const o = c.at;
  switch (header) {
    case 'XRCETH':
      c.number('XRC SRQ', o + 1, 3);
      break;
    case 'DETH':
      c.number('Q_Key', o, 4, 'hex');
      c.number('source QP', o + 5, 3);
      break;
    case 'RETH':
      c.number64('virtual address', o);
      c.number('R_Key', o + 8, 4, 'hex');
      c.number('DMA length', o + 12, 4);
      break;
    case 'AtomicETH':
      c.number64('virtual address', o);
      c.number('R_Key', o + 8, 4, 'hex');
      c.number64('swap or add', o + 12);
      c.number64('compare', o + 20);
      break;
    case 'AETH': {
      const syndrome = c.uint(o, 1);
      c.field('syndrome', o, 1, aethName(syndrome), hex(syndrome, 2));
      c.number('MSN', o + 1, 3);
      break;
    }
    case 'AtomicAckETH':
      c.number64('original data', o);
      break;
    case 'ImmDt':
      c.number('immediate', o, 4, 'hex');
      break;
    case 'IETH':
      c.number('R_Key to invalidate', o, 4, 'hex');
      break;
    case 'CNP':
      c.field('reserved', o, 16, '16 bytes');
      break;
  }
}

function tail(c: Cursor, l3: number, pad: number, cut: boolean): void {
  c.group = 'payload';
  if (cut) {
    c.rest('head of the payload');
    c.cut = true;
    return;
  }
  if (c.left < 4 + pad) {
    c.problems.push('the frame ends before its ICRC');
    return c.rest('bytes');
  }
  const payload = c.left - 4 - pad;
  if (payload > 0) c.field('data', c.at, payload, `${payload} bytes`);
  if (pad > 0) c.field('pad', c.at + payload, pad, `${pad} bytes`);
  c.at += payload + pad;
  c.group = 'ICRC';
  // On the wire the least significant byte comes first.
  const b = c.bytes;
  const got = (b[c.at] | (b[c.at + 1] << 8) | (b[c.at + 2] << 16) | (b[c.at + 3] << 24)) >>> 0;
  const want = icrc(b.subarray(l3, c.at));
  c.field('ICRC', c.at, 4, hex(got, 8), got === want ? 'correct' : `wrong, ${hex(want, 8)} expected`);
  if (got !== want) c.problems.push('the ICRC is wrong');
  c.at += 4;
}

function mac(c: Cursor, at: number): string {
  return Array.from(c.bytes.subarray(at, at + 6), (b) => b.toString(16).padStart(2, '0')).join(':');
}
function gid(c: Cursor, at: number): string {
  return Array.from({ length: 8 }, (_, i) => c.uint(at + 2 * i, 2).toString(16)).join(':');
}
