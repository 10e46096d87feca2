// SPDX-License-Identifier: Apache-2.0
// The records of a synthetic trace: two hosts, 29 spans a message from the post to the poll, counters, states, instants, packets. The
// same count gives the same records.
export const kSpansPerMessage = 29;
export const kStages = ['cpu_post', 'pcie_down', 'wqe_fetch', 'payload_dma', 'wire', 'receive', 'cqe_write', 'visible', 'poll'];

const kHostLanes = [
  'cpu0',
  'cpu0.wc',
  'pcie.root_complex',
  'pcie.up',
  'pcie.down',
  'iommu',
  'hca.requester',
  'hca.translation',
  'hca.dma',
  'hca.tx',
  'hca.rx',
  'hca.completions',
];
const kPerHost = kHostLanes.length + 2; // a counter lane and a state lane more
export const kLanes = [0, 1]
  .flatMap((host) => [
    ...kHostLanes.map((p) => ({ host, path: `host${host}.${p}`, kind: 'pipelined' })),
    { host, path: `host${host}.hca.sq`, kind: 'counter' },
    { host, path: `host${host}.hca.qp256`, kind: 'state', states: ['RESET', 'INIT', 'RTR', 'RTS', 'SQD', 'SQE', 'ERR'] },
  ])
  .concat([
    { host: -1, path: 'fabric.host0_to_host1', kind: 'pipelined' },
    { host: -1, path: 'fabric.host1_to_host0', kind: 'pipelined' },
  ])
  .map((l, id) => ({ id, ...l }));

export const kPoints = [
  ['cpu.post', 'cpu', 'span', ['qpn', 'wqes']],
  ['cpu.wc_flush', 'cpu', 'span', ['bus', 'bytes', 'reason']],
  ['pcie.MWr', 'pcie', 'span', ['tag', 'length', 'address', 'wire_bytes']],
  ['hca.wqe', 'hca', 'span', ['qpn', 'wqe', 'opcode', 'bytes']],
  ['hca.translate', 'hca', 'span', ['key', 'va', 'bytes']],
  ['pcie.MRd', 'pcie', 'span', ['tag', 'length', 'address', 'wire_bytes']],
  ['pcie.dma_read', 'pcie', 'span', ['tag', 'length', 'address', 'status']],
  ['pcie.CplD', 'pcie', 'span', ['tag', 'length', 'address', 'wire_bytes']],
  ['hca.dma_read', 'hca', 'span', []],
  ['hca.tx', 'hca', 'span', ['qpn', 'psn', 'opcode', 'bytes']],
  ['fabric.wire', 'fabric', 'span', ['qpn', 'psn', 'opcode', 'bytes']],
  ['hca.rx', 'hca', 'span', ['qpn', 'psn', 'opcode', 'bytes']],
  ['pcie.dma_write', 'pcie', 'span', ['length', 'iova', 'phys']],
  ['hca.cqe', 'hca', 'span', ['cqn', 'qpn', 'opcode', 'syndrome']],
  ['cpu.poll', 'cpu', 'span', ['address']],
  ['hca.retransmit', 'hca', 'instant', ['qpn', 'psn', 'cause']],
  ['hca.sq_depth', 'hca', 'counter', ['wqes']],
  ['hca.state', 'hca', 'state', ['state']],
  ['fabric.frame', 'fabric', 'packet', []],
].map(([name, cat, kind, args], id) => ({ id, name, cat, kind, args }));
const P = Object.fromEntries(kPoints.map((p) => [p.name, p.id]));

/** A generator of numbers below n; the seed is fixed. */
function random() {
  let x = 0x2545f491;
  return (n) => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 0) % n;
  };
}

/** Yields {spans, message, instants, counters, packets} per message, about 1.05 us apart. Span ids count from 1. */
export function* messages(count) {
  const rnd = random();
  let id = 1;
  for (let m = 1; m <= count; ++m) {
    const side = m % 2;
    const lane = (host, path) => host * kPerHost + kHostLanes.indexOf(path);
    const a = side;
    const b = 1 - side;
    const fabric = 2 * kPerHost + a;
    const back = 2 * kPerHost + b;
    const qpn = 256 + (m % 16);
    const psn = (m * 3) % (1 << 24);
    let t = 1_000_000 + m * 1_050_000 + rnd(200_000);
    const post = t;
    const spans = [];
    const marks = [];
    let cause = 0;
    const add = (host, path, point, wait, dur, args, parent = cause) => {
      const l = typeof host === 'number' ? lane(host, path) : path;
      spans.push({ id, parent, lane: l, point: P[point], start: t + wait, dur, wait, msg: m, args });
      t += wait + dur;
      return id++;
    };
    const stage = () => marks.push(t);
    cause = add(a, 'cpu0', 'cpu.post', 0, 65_500, [qpn, 1]);
    stage();
    cause = add(a, 'cpu0.wc', 'cpu.wc_flush', 0, 40_000, [0x3ffe00800 + 0, 64, 0]);
    cause = add(a, 'pcie.down', 'pcie.MWr', rnd(3) * 1500, 86_191, [0, 64, 0x3ffe00800, 88]);
    stage();
    cause = add(a, 'hca.requester', 'hca.wqe', 10_000, 45_000, [qpn, m & 0xffff, 10, 4096]);
    stage();
    cause = add(a, 'hca.translation', 'hca.translate', 0, 15_000, [4097, 0x201000 + m, 4096]);
    const dma = cause;
    const begun = t;
    let last = t;
    for (let k = 0; k < 4; ++k) {
      t = begun + k * 2000;
      let c = add(a, 'pcie.up', 'pcie.MRd', 0, 81_688, [k, 512, 0x80000000 + k * 512, 24], dma);
      c = add(a, 'pcie.root_complex', 'pcie.dma_read', 5_000, 185_000, [k, 512, 0x80000000 + k * 512, 0], c);
      c = add(a, 'pcie.down', 'pcie.CplD', k * 19_420, 99_419, [k, 512, 0x80000000 + k * 512, 536], c);
      last = t;
      cause = c;
    }
    t = last;
    stage();
    cause = add(a, 'hca.tx', 'hca.tx', rnd(2) * 12_000, 80_000, [qpn, psn, 4, 4096]);
    const sent = t;
    cause = add(a, fabric, 'fabric.wire', 0, 400_280, [qpn, psn, 4, 4154]);
    spans[spans.length - 1].lane = fabric;
    const arrived = t;
    stage();
    cause = add(b, 'hca.rx', 'hca.rx', 0, 95_000, [qpn, psn, 4, 4096]);
    const received = cause;
    const at = t;
    stage();
    cause = add(b, 'hca.completions', 'hca.cqe', 0, 25_000, [2, qpn, 2, 0]);
    stage();
    cause = add(b, 'pcie.up', 'pcie.MWr', rnd(4) * 700, 99_701, [0, 64, 0x80002000, 88]);
    cause = add(b, 'pcie.root_complex', 'pcie.dma_write', 5_000, 60_000, [64, 0x80002000, 0x100402000]);
    stage();
    add(b, 'cpu0', 'cpu.poll', 0, 45_722, [0x7ffd_1000]);
    stage();
    const total = t - post;
    // The acknowledgement runs back beside the delivery.
    t = at;
    let c = add(b, 'hca.tx', 'hca.tx', 0, 80_000, [qpn, psn, 17, 0], received);
    c = add(b, back, 'fabric.wire', 0, 72_920, [qpn, psn, 17, 62], c);
    spans[spans.length - 1].lane = back;
    c = add(a, 'hca.rx', 'hca.rx', 0, 95_000, [qpn, psn, 17, 0], c);
    c = add(a, 'hca.completions', 'hca.cqe', 0, 25_000, [1, qpn, 0, 0], c);
    add(a, 'pcie.up', 'pcie.MWr', 0, 86_191, [0, 64, 0x80003000, 88], c);
    const stages = marks.map((x, i) => x - (i === 0 ? post : marks[i - 1]));
    yield {
      spans,
      message: { id: m, t: post, total, flow: 0, op: 2, bytes: 4096, stages },
      instants:
        m % 500 === 0 ? [{ t: at, lane: lane(a, 'hca.requester'), point: P['hca.retransmit'], msg: m, args: [qpn, psn, 1] }] : [],
      counters: [
        { t: post, lane: a * kPerHost + kHostLanes.length, point: P['hca.sq_depth'], v: (m % 7) + 1 },
        { t: post + total, lane: a * kPerHost + kHostLanes.length, point: P['hca.sq_depth'], v: m % 7 },
      ],
      states:
        m <= 8
          ? [{ t: post, lane: (m % 2) * kPerHost + kHostLanes.length + 1, point: P['hca.state'], v: Math.min(3, m >> 1) }]
          : [],
      packets: [
        { t: sent, lane: fabric, point: P['fabric.frame'], msg: m, len: 4154, tx: 1 },
        { t: arrived, lane: fabric, point: P['fabric.frame'], msg: m, len: 4154, tx: 0 },
      ],
    };
  }
}
