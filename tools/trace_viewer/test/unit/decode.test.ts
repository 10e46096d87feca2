// SPDX-License-Identifier: Apache-2.0
// Decoders of raw bytes. The packets are the published ICRC vectors that the simulator's own tests use.
import { describe, expect, test } from 'vitest';
import type { Decoded } from '../../src/decode/bytes';
import { decodeCqe, decodeEqe } from '../../src/decode/completion';
import { crc32, icrc } from '../../src/decode/icrc';
import { decodeBytes } from '../../src/decode/index';
import { decodePacket, extendedHeaders } from '../../src/decode/packet';
import { decodeTlp } from '../../src/decode/tlp';
import { aethName, bthOpcodeName, formatArgument, valueName } from '../../src/decode/values';
import { decodeReceiveWqe, decodeWqe } from '../../src/decode/wqe';

const hex = (text: string) => new Uint8Array(Buffer.from(text.replace(/\s/g, ''), 'hex'));
const value = (d: Decoded, name: string, group?: string) =>
  d.fields.find((f) => f.name === name && (!group || f.group === group))?.value;
const kEthernet4 = '020000000002 020000000001 0800';
const kEthernet6 = '020000000002 020000000001 86dd';
const kVectors = {
  cnp: [
    '45c2003c 718c4000 40119161 0a001101 0a001201 000012b7 00280000 8100ffff 40000118 00000000 00000000 00000000 00000000 00000000',
    '82fd002a',
  ],
  write: [
    '45000044 00004000 401126a7 0a000001 0a000002 c00112b7 00300000 0a40ffff 00000102 80000010 00007f00 00001000 00001a01 00000008 00010203 04050607',
    'c9bf92cd',
  ],
  ack: ['45000030 00004000 401126bb 0a000002 0a000001 c00112b7 001c0000 1140ffff 00000101 00000010 1f000001', 'ccfed1d2'],
  ipv6: [
    '60000000 001c1140 fe800000 00000000 00000000 00000001 fe800000 00000000 00000000 00000002 c00112b7 001c0000 0440ffff 00000102 80000010 41424344',
    '6e1aacdc',
  ],
};

describe('packets', () => {
  test('ICRC vectors', () => {
    for (const [packet, crc] of Object.values(kVectors)) {
      const b = hex(crc);
      expect(icrc(hex(packet))).toBe((b[0] | (b[1] << 8) | (b[2] << 16) | (b[3] << 24)) >>> 0);
    }
    expect(crc32(new TextEncoder().encode('123456789'))).toBe(0xcbf43926);
  });
  test('RDMA WRITE', () => {
    const d = decodePacket(hex(kEthernet4 + kVectors.write[0] + kVectors.write[1]));
    expect(d.problems).toEqual([]);
    expect(d.title).toBe('RC RDMA_WRITE_ONLY, QP 258, PSN 16');
    expect(value(d, 'source', 'Ethernet')).toBe('02:00:00:00:00:01');
    expect(value(d, 'destination', 'IPv4')).toBe('10.0.0.2');
    expect(value(d, 'virtual address')).toBe('0x00007f0000001000');
    expect(value(d, 'R_Key')).toBe('0x00001a01');
    expect(value(d, 'DMA length')).toBe('8');
    expect(value(d, 'AckReq')).toBe('1');
    expect(value(d, 'data')).toBe('8 bytes');
    expect(d.fields.find((f) => f.name === 'ICRC')!.note).toBe('correct');
    // Every byte of the frame belongs to a field.
    const covered = new Set(d.fields.flatMap((f) => Array.from({ length: f.length }, (_, i) => f.at + i)));
    expect(covered.size).toBe(14 + hex(kVectors.write[0]).length + 4);
  });
  test('acknowledgement, CNP, IPv6', () => {
    const ack = decodePacket(hex(kEthernet4 + kVectors.ack[0] + kVectors.ack[1]));
    expect([value(ack, 'syndrome'), value(ack, 'MSN')]).toEqual(['ACK', '1']);
    expect(decodePacket(hex(kEthernet4 + kVectors.cnp[0] + kVectors.cnp[1])).title).toBe('CNP, QP 280, PSN 0');
    const six = decodePacket(hex(kEthernet6 + kVectors.ipv6[0] + kVectors.ipv6[1]));
    expect(six.problems).toEqual([]);
    expect(value(six, 'source', 'IPv6')).toBe('fe80:0:0:0:0:0:0:1');
  });
  test('what is wrong is said: ICRC, checksum, cut frames', () => {
    const bad = hex(kEthernet4 + kVectors.write[0] + 'c9bf92ce');
    expect(decodePacket(bad).problems).toEqual(['the ICRC is wrong']);
    const sum = hex(kEthernet4 + kVectors.ack[0] + kVectors.ack[1]);
    sum[14 + 10] ^= 1;
    expect(decodePacket(sum).problems).toEqual(['IPv4: the header checksum is wrong']);
    const whole = hex(kEthernet4 + kVectors.write[0] + kVectors.write[1]);
    for (let n = 0; n < whole.length; ++n) expect(() => decodePacket(whole.slice(0, n))).not.toThrow();
    expect(decodePacket(whole.slice(0, 60)).problems[0]).toMatch(/RETH: 16 bytes expected at offset 54, 6 there/);
    const head = decodePacket(whole.slice(0, 72), 86);
    expect([head.problems, head.cut, decodePacket(whole).cut]).toEqual([[], true, false]);
    expect(decodePacket(hex('ffffffffffff0200000000010806 0001')).title).toBe('Ethernet frame, not RoCEv2');
  });
  test('headers of each opcode', () => {
    expect(extendedHeaders(0x0b)).toEqual(['RETH', 'ImmDt']);
    expect(extendedHeaders(0x64)).toEqual(['DETH']);
    expect(extendedHeaders(0x12)).toEqual(['AETH', 'AtomicAckETH']);
    expect(extendedHeaders(0x0e)).toEqual([]);
    expect(extendedHeaders(0xa4)).toEqual(['XRCETH']);
    expect(extendedHeaders(0xb1)).toEqual(['AETH']);
    expect(extendedHeaders(0x17)).toEqual(['IETH']);
    expect(bthOpcodeName(0x65)).toBe('UD SEND_ONLY_WITH_IMM');
    expect([aethName(0x1f), aethName(0x2d), aethName(0x60)]).toEqual(['ACK', 'RNR NAK, timer code 13', 'NAK PSN sequence error']);
  });
});

describe('work queue entries', () => {
  test('RDMA WRITE with two data segments', () => {
    const d = decodeWqe(
      hex(
        '00001208 00010004 00000008 00000000' +
          '00007f0000001000 00001a01 00000000' +
          '00000800 00001001 0000200000000000' +
          '00000010 00001002 0000200000001000',
      ),
    );
    expect(d.problems).toEqual([]);
    expect(d.title).toBe('RDMA_WRITE WQE of QP 256, index 18');
    expect(value(d, 'FM, CE, SE')).toBe('no fence, signaled, –');
    expect(value(d, 'remote address')).toBe('0x00007f0000001000');
    expect(value(d, 'byte count', 'data segment 0')).toBe('2048');
    expect(value(d, 'L_Key', 'data segment 1')).toBe('0x00001002');
  });
  test('SEND with inline data and a fence', () => {
    const d = decodeWqe(hex('0000010a 00010002 0000008a 00000000' + '80000004 61626364 00000000 00000000'));
    expect(value(d, 'FM, CE, SE')).toBe('fence, signaled, solicited');
    expect(value(d, 'byte count', 'inline data 0')).toBe('4');
    expect(d.problems).toEqual([]);
  });
  test('atomic, UD and UMR', () => {
    const atomic = decodeWqe(
      hex(
        '00000011 00010004 00000008 00000000' +
          '0000000000001000 00001a01 00000000' +
          '0000000000000005 0000000000000003' +
          '00000008 00001001 0000000000002000',
      ),
    );
    expect([value(atomic, 'swap or add'), value(atomic, 'compare')]).toEqual(['0x0000000000000005', '0x0000000000000003']);
    const ud = decodeWqe(
      hex(
        '0000000a 00010005 00000008 00000000' +
          '80010000 00000000 80000123 0000c001 00000000 020000000002 0040 80000000' +
          '00000000000000000000ffff0a000002' +
          '00000040 00001001 0000000000002000',
      ),
    );
    expect(value(ud, 'destination QP')).toBe('291');
    expect(value(ud, 'byte count')).toBe('64');
    expect(value(ud, 'remote MAC')).toBe('02:00:00:00:00:02');
    const umr = decodeWqe(
      hex('00000025 00010004 00000008 00001100' + '20000000 00000000 0000000000002000'.padEnd(96 + 2, '0').slice(0, 98)),
    );
    expect(value(umr, 'flags', 'UMR control segment')).toBe('0x20');
  });
  test('receive WQE; cut WQE', () => {
    const rq = decodeReceiveWqe(
      hex('00001000 00001001 0000000000001000' + '00000000 00000100 0000000000000000' + '0'.repeat(32)),
    );
    expect(rq.fields.filter((f) => f.name === 'L_Key')).toHaveLength(2);
    const cut = decodeWqe(hex('00001208 00010004 00000008 00000000'));
    expect(cut.problems.length).toBeGreaterThan(0);
    expect(decodeWqe(hex('0011')).problems).toEqual(['control segment: 16 bytes expected at offset 0, 2 there']);
  });
});

describe('completions and events', () => {
  const entry = (set: (b: Uint8Array) => void) => {
    const b = new Uint8Array(64);
    set(b);
    return b;
  };
  test('a good CQE and one with an error', () => {
    const good = decodeCqe(entry((b) => b.set([0x0a, 0, 1, 0, 0, 0x12, 0xab, 0x01], 56)));
    expect(good.title).toBe('CQE REQ of QP 256');
    expect([value(good, 'WQE opcode'), value(good, 'WQE counter')]).toEqual(['SEND', '18']);
    expect(value(good, 'syndrome')).toBeUndefined();
    const bad = decodeCqe(
      entry((b) => {
        b.set([0x88, 0x13, 0x08, 0, 1, 0, 0, 0x05, 0, 0xd1], 54);
      }),
    );
    expect(bad.title).toBe('CQE REQ_ERR REMOTE_ACCESS_ERR of QP 256');
    expect(value(bad, 'vendor error syndrome')).toBe('0x88');
  });
  test('a CQE of 128 bytes has its fields in the second half', () => {
    const b = new Uint8Array(128);
    b[127] = 0x20;
    b[64 + 47] = 99;
    const d = decodeCqe(b);
    expect(d.title).toBe('CQE RESP_SEND of QP 0');
    expect(value(d, 'byte count')).toBe('99');
  });
  test('event queue entries', () => {
    const comp = decodeEqe(entry((b) => b.set([0, 0, 7], 57)));
    expect([comp.title, value(comp, 'CQ number')]).toEqual(['EQE COMP', '7']);
    const error = decodeEqe(
      entry((b) => {
        b[1] = 4;
        b[35] = 3;
        b[43] = 1;
        b[63] = 1;
      }),
    );
    expect([error.title, value(error, 'CQ number'), value(error, 'syndrome'), value(error, 'owner')]).toEqual([
      'EQE CQ_ERROR',
      '3',
      'overrun',
      '1',
    ]);
    expect(decodeEqe(new Uint8Array(3)).problems).toHaveLength(1);
  });
});

describe('transaction layer packets', () => {
  test('memory write with 64-bit address and data', () => {
    const d = decodeTlp(hex('60000010 010000ff 000000038ffe0800' + '00'.repeat(64)));
    expect(d.title).toBe('MWr, 64 bytes');
    expect(value(d, 'Address')).toBe('0x000000038ffe0800');
    expect(value(d, 'Requester ID')).toBe('01:00.0');
    expect(d.problems).toEqual([]);
  });
  test('memory read with 32-bit address, completion with data', () => {
    const read = decodeTlp(hex('00000080 010003ff 80001000'));
    expect([read.title, value(read, 'Tag'), value(read, 'Address')]).toEqual(['MRd, 512 bytes', '3', '0x80001000']);
    const done = decodeTlp(hex('4a000040 00000200 01000300' + '00'.repeat(256)));
    expect([done.title, value(done, 'Status'), value(done, 'Byte count')]).toEqual(['CplD, 256 bytes', 'SC', '512']);
    expect([done.cut, decodeTlp(hex('4a000040 00000200 01000300')).cut]).toEqual([false, true]);
    expect(decodeTlp(hex('00')).problems).toHaveLength(1);
  });
});

describe('names of values', () => {
  test('by point and argument', () => {
    expect(valueName('fabric.wire', 'opcode', 4)).toBe('RC SEND_ONLY');
    expect(valueName('hca.wqe', 'opcode', 10)).toBe('SEND');
    expect(valueName('hca.command', 'opcode', 0x500)).toBe('CREATE_QP');
    expect(valueName('nobody.knows', 'opcode', 4)).toBeUndefined();
    expect(formatArgument('address', 4096)).toBe('0x1000');
    expect(formatArgument('qpn', 256)).toBe('256');
    expect(formatArgument('x', 2 ** 60)).toBe('≈ 1.152922e+18');
  });
  test('kinds of raw bytes', () => {
    expect(decodeBytes('eqe', new Uint8Array(64)).title).toBe('EQE COMP');
  });
});
