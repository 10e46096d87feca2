// SPDX-License-Identifier: Apache-2.0
// Packets as a ladder: conversations, retransmissions, losses, and what acknowledgements say.
import { describe, expect, test } from 'vitest';
import { conversations, packetOf, rungText } from '../../src/model/ladder';
import { nativeText } from '../synthetic.mjs';
import { fixture, kHeader, lines, open } from './open';

const kWire = { k: 'point', id: 0, name: 'fabric.wire', cat: 'fabric', kind: 'span', args: ['qpn', 'psn', 'opcode', 'bytes'] };
const kDrop = { k: 'point', id: 1, name: 'fabric.drop', cat: 'fabric', kind: 'instant', args: ['qpn', 'psn', 'opcode'] };
const kFrame = { k: 'point', id: 2, name: 'fabric.frame', cat: 'fabric', kind: 'packet', args: [] };
const kCables = {
  ...kHeader,
  lanes: [
    { id: 0, host: -1, path: 'fabric.host0_to_host1', kind: 'pipelined' },
    { id: 1, host: -1, path: 'fabric.host1_to_host0', kind: 'pipelined' },
    { id: 2, host: -1, path: 'fabric.host0_to_host1.events', kind: 'instant' },
  ],
};

/** [t, lane, msg, qpn, psn, opcode] per packet on a cable. */
function wires(...rows: number[][]) {
  const column = (k: number) => rows.map((r) => r[k]);
  return {
    k: 'span',
    n: rows.length,
    t0: 0,
    t1: 9999,
    id0: 1,
    ts: rows.map((r, i) => r[0] - (i > 0 ? rows[i - 1][0] : 0)),
    dur: rows.map(() => 70),
    lane: column(1),
    msg: column(2),
    a0: column(3),
    a1: column(4),
    a2: column(5),
  };
}

describe('ladder', () => {
  test('requests, replies, losses and retransmissions of a pair of queue pairs', async () => {
    const ack = (syndrome: string) =>
      '0200000000020200000000010800' +
      '450000300000400040110000' +
      '0a0000020a000001c00112b7001c0000' +
      '1140ffff0000010000000007' +
      `${syndrome}000001ccfed1d2`;
    const t = await open(
      lines(
        kCables,
        kWire,
        kDrop,
        kFrame,
        // Two requests, the second is lost and sent again; an RNR NAK that belongs to no message; another pair with equal PSNs.
        wires(
          [100, 0, 1, 300, 7, 4],
          [200, 0, 2, 300, 8, 4],
          [300, 1, 0, 256, 7, 17],
          [900, 0, 2, 300, 8, 4],
          [950, 0, 3, 301, 9, 4],
        ),
        { k: 'instant', n: 1, t0: 200, t1: 200, lane: [2], point: [1], msg: [2], a0: [300], a1: [8], a2: [4] },
        { k: 'packet', n: 1, t0: 300, t1: 300, lane: [1], point: [2], len: [62], tx: [1], bytes: [ack('2c')] },
      ),
    );
    const [pair, other] = conversations(t);
    expect([pair.name, other.name]).toEqual(['host0 QP 256 ⇄ host1 QP 300', 'host1 QP 301']);
    expect(pair.nodes).toEqual(['host0', 'host1']);
    expect(pair.rungs.map((r) => [r.t, r.from, r.psn, r.repeated, r.fate])).toEqual([
      [100, 'host0', 7, false, ''],
      [200, 'host0', 8, false, 'dropped'],
      [300, 'host1', 7, false, ''],
      [900, 'host0', 8, true, ''],
    ]);
    expect(pair.rungs.map((r) => rungText(t, r))).toEqual([
      'RC SEND_ONLY',
      'RC SEND_ONLY',
      'RC ACKNOWLEDGE: RNR NAK, timer code 12',
      'RC SEND_ONLY',
    ]);
    expect(packetOf(t, pair.rungs[0])).toBe(-1);
  });
  test('many pairs stay apart', async () => {
    const t = await open(nativeText(160));
    const all = conversations(t);
    expect(all).toHaveLength(16);
    expect(all.map((c) => c.rungs.length)).toEqual(Array(16).fill(20));
    expect(all.flatMap((c) => c.rungs).filter((r) => r.repeated || r.fate)).toEqual([]);
  });
  test('a run of the simulator that loses a packet', async () => {
    const t = await open(fixture('lost_packet_waits_for_the_ack_timeout.jsonl.gz'));
    const [c] = conversations(t);
    expect(c.rungs.map((r) => `${r.from} ${rungText(t, r)} ${r.fate}${r.repeated ? 'again' : ''}`)).toEqual([
      'host0 RC SEND_ONLY dropped',
      'host0 RC SEND_ONLY again',
      'host1 RC ACKNOWLEDGE ',
    ]);
    expect(c.rungs[1].psn).toBe(c.rungs[0].psn);
  });
  test('no packets, no conversation', async () => {
    expect(conversations(await open(lines(kCables, kWire)))).toEqual([]);
  });
});
