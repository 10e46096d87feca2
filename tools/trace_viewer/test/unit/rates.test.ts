// SPDX-License-Identifier: Apache-2.0
// Counters that only rise are shown by their slope; and where counters lie among the lanes.
import { describe, expect, test } from 'vitest';
import { orderLanes } from '../../src/model/lanes';
import { formatRate, isRate, profile, rateAt } from '../../src/view/rates';
import { Scale } from '../../src/view/viewport';
import { kHeader, lines, open } from './open';

const counter = (id: number, name: string, arg: string) => ({ k: 'point', id, name, cat: 'c', kind: 'counter', args: [arg] });

describe('rates', () => {
  const trace = open(
    lines(
      kHeader,
      counter(0, 'fabric.wire_bytes', 'bytes'),
      counter(1, 'hca.cq_occupancy', 'cqes'),
      counter(2, 'iommu.iotlb_misses', 'misses'),
      // Carried bytes: 50 in 100 ps, 100 in 100 ps, then nothing.
      { k: 'counter', n: 4, t0: 0, t1: 1000, t: [0, 100, 100, 800], lane: [0, 0, 0, 0], v: [0, 50, 150, 150] },
      { k: 'counter', n: 2, t0: 0, t1: 9, t: [0, 9], point: [1, 1], v: [1, 2] },
      // A counter of that name that falls is a level.
      { k: 'counter', n: 3, t0: 0, t1: 9, t: [0, 4, 5], point: [2, 2, 2], v: [1, 2, 0] },
    ),
  );
  test('which counters are', async () => {
    const t = await trace;
    expect(t.counters.series.map((_, s) => isRate(t, s))).toEqual([true, false, false]);
  });
  test('the slope between records', async () => {
    const { counters } = await trace;
    const [s] = counters.series;
    expect(rateAt(counters, s, 50, 10)).toBeCloseTo(0.5);
    expect(rateAt(counters, s, 150, 1)).toBeCloseTo(1);
    expect(rateAt(counters, s, 100, 100)).toBeCloseTo(0.75);
    expect(rateAt(counters, s, 600, 100)).toBe(0);
    expect(rateAt(counters, s, 5000, 100)).toBe(0);
    const steps = profile(counters, s, new Scale({ from: 0, to: 1000 }, 0, 20));
    expect(Array.from(steps)).toEqual([0.5, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    // Whatever the zoom, the steps carry what the counter says.
    const fine = profile(counters, s, new Scale({ from: 0, to: 200 }, 0, 400));
    expect(fine.reduce((sum, x) => sum + x, 0)).toBeCloseTo(150);
  });
  test('in gigabits of bytes, per millisecond of others', async () => {
    const t = await trace;
    const [bytes, , misses] = t.points;
    expect([0.05, 1.25e-5, 0].map((r) => formatRate(r, bytes))).toEqual(['400 Gb/s', '100 Mb/s', '0 Gb/s']);
    expect(formatRate(3.21e-9, misses)).toBe('3.21 /ms');
  });
});

test('a counter lies below the lane that it belongs to', async () => {
  const paths = [
    'host0.pcie.up',
    'host0.pcie.down',
    'host0.hca.tx',
    'host0.pcie.up.wire_bytes',
    'host0.hca.qp1',
    'host0.pcie.up.credits.ph',
  ];
  const twice = [0, 1].flatMap((host) =>
    paths.map((p) => ({ host, path: p.replace('host0', `host${host}`), kind: 'pipelined' })),
  );
  const t = await open(lines({ ...kHeader, lanes: twice.map((l, id) => ({ ...l, id })) }));
  const groups = orderLanes(t, () => true).map((g) => g.lanes.map((l) => t.lanes[l].path.slice(6)));
  expect(groups).toEqual([
    ['pcie.up', 'pcie.up.wire_bytes', 'pcie.up.credits.ph', 'pcie.down', 'hca.tx', 'hca.qp1'],
    ['hca.qp1', 'hca.tx', 'pcie.down', 'pcie.up', 'pcie.up.wire_bytes', 'pcie.up.credits.ph'],
  ]);
});
