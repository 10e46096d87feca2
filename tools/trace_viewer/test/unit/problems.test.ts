// SPDX-License-Identifier: Apache-2.0
// The list of problems: drops, NAKs, errors, and wake-ups that were lost, came late or were kept.
import { describe, expect, test } from 'vitest';
import { findProblems } from '../../src/model/problems';
import { matchMessages, parseQuery, statusText } from '../../src/model/search';
import { compare } from '../../src/model/compare';
import { stagesOf } from '../../src/model/waterfall';
import { Status } from '../../src/model/types';
import { fixture, kEnd, kHeader, lines, open, point } from './open';

describe('problems', () => {
  test('a lost packet is a drop and a retransmission, with their messages', async () => {
    const t = await open(fixture('lost_packet_waits_for_the_ack_timeout.jsonl.gz'));
    const kinds = findProblems(t).map((p) => p.kind);
    expect(kinds).toContain('packet dropped');
    expect(kinds).toContain('retransmission');
    expect(kinds).not.toContain('lost wake-up');
    const drop = findProblems(t).find((p) => p.kind === 'packet dropped')!;
    expect(drop.text).toMatch(/qpn \d+, psn \d+, opcode RC /);
  });
  test('a lost wake-up is found where it happened', async () => {
    const t = await open(fixture('lost_wakeup_without_a_second_poll.jsonl.gz'));
    const lost = findProblems(t).filter((p) => p.kind === 'lost wake-up');
    expect(lost).toHaveLength(1);
    expect(lost[0].text).toContain('CQ 1 was armed at index 0 with 1 completion(s) unseen');
    expect(lost[0].t).toBe(726_151_879);
  });
  test('a second poll after arming keeps the wake-up', async () => {
    const t = await open(fixture('wakeup_kept_by_a_second_poll.jsonl.gz'));
    expect(findProblems(t)).toEqual([]);
  });
  test('a wake-up that only the next completion brings is late', async () => {
    const trace = (arm: number, polled: number) =>
      open(
        lines(
          kHeader,
          point(0, 'hca.cqe', ['cqn', 'qpn', 'opcode', 'syndrome']),
          point(1, 'hca.eqe', ['eqn', 'type', 'object']),
          point(2, 'hca.cq_doorbell', ['cqn', 'ci', 'sn', 'solicited'], 'instant'),
          // Completions at 100 and 900 ns, their events at 1000 ns.
          {
            k: 'span',
            n: 3,
            t0: 100e3,
            t1: 1000e3,
            id0: 1,
            ts: [0, 800e3, 100e3],
            lane: [3, 3, 3],
            point: [0, 0, 1],
            msg: [1, 2, 0],
            a0: [7, 7, 1],
            a2: [2, 2, 7],
          },
          { k: 'instant', n: 2, t0: arm, t1: 2000e3, t: [0, 2000e3 - arm], lane: [3, 3], point: [2, 2], a0: [7, 7], a1: [0, 2] },
          { k: 'msg', n: 2, t0: 0, t1: 3000e3, id: [1, 2], total: [polled, 1900e3], op: [2, 2] },
          kEnd(3, { instants: 2, messages: 2 }),
        ),
      );
    const found = async (arm: number, polled: number) => findProblems(await trace(arm, polled)).map((p) => p.text);
    expect(await found(150e3, 1800e3)).toEqual([
      'CQ 7 was armed at index 0 with 1 completion(s) unseen in it; the event came with the next completion, 850 ns later',
    ]);
    // Polled after arming; armed before the completion came; fired at once.
    expect(await found(150e3, 300e3)).toEqual([]);
    expect(await found(50e3, 1800e3)).toEqual([]);
    expect(await found(950e3, 1800e3)).toEqual([]);
  });
  test('the marks of the file count, whatever the point is called', async () => {
    const t = await open(
      lines(
        kHeader,
        { ...point(0, 'new.thing', ['a', 'code']), mark: 'error', mark_if: 1 },
        { ...point(1, 'new.mishap', ['a'], 'instant'), mark: 'warning' },
        { ...point(2, 'hca.nak', ['qpn', 'psn', 'syndrome']), mark: 'warning' },
        { ...point(3, 'verbs.post_send', ['qpn', 'count', 'errno']), mark: 'warning', mark_if: 2 },
        { ...point(4, 'verbs.get_cq_event', ['fd', 'errno']) },
        { k: 'span', n: 2, t0: 80, t1: 80, id0: 9, point: [3, 4], a0: [256, 5], a1: [2, 11], a2: [12, 0] },
        {
          k: 'span',
          n: 3,
          t0: 10,
          t1: 90,
          id0: 1,
          ts: [0, 10, 10],
          point: [0, 0, 2],
          a0: [4, 5, 256],
          a1: [0, 7, 9],
          a2: [0, 0, 96],
        },
        { k: 'instant', n: 1, t0: 50, t1: 50, point: [1], a0: [8] },
        kEnd(5, { instants: 1 }),
      ),
    );
    expect(findProblems(t).map((p) => `${p.severity} ${p.kind}: ${p.text}`)).toEqual([
      'error thing: a 5, code 7',
      'warning NAK: qpn 256, psn 9, syndrome NAK PSN sequence error',
      'warning mishap: a 8',
      'warning verbs call failed: ibv_post_send: qpn 256, count 2, errno ENOMEM',
    ]);
  });
  test('messages whose record says that they failed', async () => {
    const t = await open(
      lines(
        kHeader,
        point(0, 'hca.cqe', ['cqn', 'qpn', 'opcode', 'syndrome']),
        { k: 'span', n: 1, t0: 40, t1: 50, id0: 1, dur: [10], msg: [2], a2: [13], a3: [0x15] },
        {
          k: 'msg',
          n: 5,
          t0: 0,
          t1: 90,
          id: [1, 2, 3, 4, 5],
          t: [0, 1, 1, 1, 1],
          total: [50, 60, 70, 10, 80],
          status: [0, 12, 10, 254, 255],
          post: [10, 20, 0, 0, 5],
          wire: [40, 0, 0, 0, 0],
        },
        kEnd(1, { messages: 5 }),
      ),
    );
    const found = findProblems(t).map((p) => [p.kind, p.msg, p.text]);
    expect(found).toEqual([
      ['message failed', 3, 'WR 3 ended with REM_ACCESS_ERR'],
      ['message lost', 4, 'WR 4 got lost: an unreliable receiver dropped it, or its CQE found no room'],
      ['message not delivered', 5, 'WR 5 was under way when the run ended'],
      // Its completion has told already.
      ['error completion', 2, 'CQ 0, QP 0: TRANSPORT_RETRY_EXC_ERR'],
    ]);
    const texts = ['SUCCESS', 'RETRY_EXC_ERR', 'REM_ACCESS_ERR', 'lost', 'not finished'];
    expect(texts.map((_, r) => statusText(t, r))).toEqual(texts);
    // Only what was delivered counts as latency; the others show their stages as far as they came.
    expect(stagesOf(t, 0)).toMatchObject({ total: 50, sum: 50 });
    expect(stagesOf(t, 1)).toMatchObject({ total: 20, sum: 20, bars: [{ stage: 'post', ps: 20 }] });
    expect(stagesOf(t, 3)).toBeNull();
    expect(t.messages.total[4]).toBeNaN();
    expect(compare(t, t).pairs.map((p) => p.id)).toEqual([1]);
    const rows = (q: string) => Array.from(matchMessages(t, parseQuery(q)), (r) => t.messages.id[r]);
    expect(rows('status:error')).toEqual([2, 3, 4, 5]);
    expect(rows('status:lost')).toEqual([4]);
    expect(rows('status:ok')).toEqual([1]);
    expect(rows('status:rem_access')).toEqual([3]);
    expect(rows('status:12')).toEqual([2]);
  });
  test('error completions, failed commands, points that no rule knows', async () => {
    const t = await open(
      lines(
        kHeader,
        point(0, 'hca.cqe', ['cqn', 'qpn', 'opcode', 'syndrome']),
        point(1, 'hca.command', ['opcode', 'status', 'slot']),
        point(2, 'new.link_error', ['lane'], 'instant'),
        point(3, 'hca.cq_overrun', ['cqn', 'producer', 'ci'], 'instant'),
        {
          k: 'span',
          n: 3,
          t0: 10,
          t1: 90,
          id0: 1,
          ts: [0, 10, 10],
          point: [0, 0, 1],
          msg: [1, 2, 0],
          a0: [1, 1, 0x500],
          a1: [256, 256, 3],
          a2: [0, 13, 0],
          a3: [80, 0x13, 0],
        },
        { k: 'instant', n: 2, t0: 50, t1: 60, t: [0, 10], point: [2, 3], a0: [4, 7] },
        kEnd(3, { instants: 2 }),
      ),
    );
    const found = findProblems(t).map((p) => `${p.severity} ${p.kind}: ${p.text}`);
    expect(found).toContain('error error completion: CQ 1, QP 256: REMOTE_ACCESS_ERR');
    expect(found).toContain('error command failed: opcode CREATE_QP, status 3, slot 0');
    expect(found).toContain('warning link error: lane 4');
    expect(found).toContain('error CQ overrun: cqn 7, producer 0, ci 0');
    expect(found.filter((f) => f.includes('error completion'))).toHaveLength(1);
    expect(t.messages.status[t.messageRow[2]]).toBe(Status.error);
    expect(t.messages.status[t.messageRow[1]]).toBe(Status.unfinished);
  });
});
