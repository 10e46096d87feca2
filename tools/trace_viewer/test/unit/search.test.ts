// SPDX-License-Identifier: Apache-2.0
// The search language over messages and spans.
import { beforeAll, describe, expect, test } from 'vitest';
import { nativeText } from '../synthetic.mjs';
import { matchInstants, matchMessages, matchSpans, parseQuery } from '../../src/model/search';
import type { Trace } from '../../src/model/types';
import { open } from './open';

let t: Trace;
beforeAll(async () => {
  t = await open(nativeText(1000));
});
const spans = (q: string) => matchSpans(t, parseQuery(q));
const ids = (q: string) => Array.from(matchMessages(t, parseQuery(q)), (r) => t.messages.id[r]);
/** Reference: a plain loop. */
const count = (f: (i: number) => boolean) => Array.from({ length: t.spans.n }, (_, i) => i).filter(f).length;
const arg = (i: number, name: string) => {
  const k = t.points[t.spans.point[i]].args.indexOf(name);
  return k < 0 ? NaN : t.spans.args[k][i];
};

describe('search', () => {
  test('by arguments of points', () => {
    expect(spans('qpn:260')).toHaveLength(count((i) => arg(i, 'qpn') === 260));
    expect(spans('psn:>2000 qpn:260')).toHaveLength(count((i) => arg(i, 'psn') > 2000 && arg(i, 'qpn') === 260));
    expect(spans('address:0x80002000')).toHaveLength(count((i) => arg(i, 'address') === 0x80002000));
    expect(spans('psn:300..309').length).toBe(count((i) => arg(i, 'psn') >= 300 && arg(i, 'psn') <= 309));
    expect(spans('psn:300..309').length).toBeGreaterThan(0);
    expect(spans('nosuch:1')).toHaveLength(0);
  });
  test('by the names of values', () => {
    expect(spans('opcode:acknowledge')).toHaveLength(
      count((i) => arg(i, 'opcode') === 17 && /tx|rx|wire/.test(t.points[t.spans.point[i]].name)),
    );
    expect(spans('opcode:send_only').length).toBe(3000);
  });
  test('by lane, point, host, time, message and pieces of names', () => {
    expect(spans('lane:host1.hca.tx')).toHaveLength(count((i) => t.lanes[t.spans.lane[i]].path === 'host1.hca.tx'));
    expect(spans('point:dma_read').length).toBe(4000);
    expect(spans('host:host0').length).toBe(count((i) => t.lanes[t.spans.lane[i]].host === 0));
    expect(spans('dur:>400ns').length).toBe(count((i) => t.spans.dur[i] > 400_000));
    expect(spans('msg:7')).toHaveLength(29);
    expect(spans('wr:7 hca.tx')).toHaveLength(2);
    expect(spans('cqe').length).toBe(2000);
    expect(spans('latency:>1us msg:5')).toHaveLength(29);
  });
  test('messages', () => {
    expect(ids('msg:5..7')).toEqual([5, 6, 7]);
    expect(ids('42')).toEqual([42]);
    expect(ids('wr:42')).toEqual([42]);
    expect(ids('wr_id:42')).toEqual([]);
    expect(ids('qpn:256').every((id) => id % 16 === 0)).toBe(true);
    expect(ids('qpn:256')).toHaveLength(62);
    expect(ids('opcode:send')).toHaveLength(1000);
    expect(ids('opcode:rdma_read')).toHaveLength(0);
    expect(ids('opcode:acknowledge qpn:257')).toHaveLength(63);
    expect(ids('lane:host0.cpu0')).toHaveLength(1000);
    expect(ids('status:ok')).toHaveLength(1000);
    expect(ids('status:error')).toHaveLength(0);
    expect(ids('psn:30')).toEqual([10]);
    expect(ids('latency:<1ns')).toEqual([]);
    expect(ids('')).toHaveLength(1000);
  });
  test('instants, and messages by them', () => {
    const instants = (q: string) => Array.from(matchInstants(t, parseQuery(q)), (i) => t.instants.msg[i]);
    expect(instants('point:retransmit').sort()).toEqual([1000, 500]);
    expect(instants('cause:nak msg:500')).toEqual([500]);
    expect(instants('t:>1ms')).toHaveLength(1);
    expect(instants('dur:>1')).toEqual([]);
    expect(ids('cause:1')).toEqual([500, 1000]);
    expect(ids('retransmit')).toEqual([500, 1000]);
  });
  test('what is wrong is said', () => {
    expect(parseQuery('qpn:').errors).toEqual(['“qpn:” has no value']);
    expect(parseQuery('psn:>x').errors).toEqual(['“>x” is no comparison']);
    expect(parseQuery('  ').terms).toEqual([]);
  });
});
