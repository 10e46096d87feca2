// SPDX-License-Identifier: Apache-2.0
// Reader of the native format: exact values, any chunking, files cut at any byte, broken lines, other formats.
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { kSpansPerMessage, nativeText } from '../synthetic.mjs';
import { spanBytes } from '../synthetic_bytes.mjs';
import { decodeBytes } from '../../src/decode/index';
import { bytesAt } from '../../src/model/byte_store';
import { fixture, kHeader, lines, open, spanById } from './open';

const kPoint = { k: 'point', id: 0, name: 'cpu.post', cat: 'cpu', kind: 'span', args: ['qpn', 'wqe'] };
const kSpans = {
  k: 'span',
  n: 3,
  t0: 100,
  t1: 900,
  id0: 7,
  id: [0, 0, 1],
  ts: [10, -10, 50],
  dur: [5, 6, 700],
  wait: [0, 2, 0],
  lane: [0, 1, 2],
  msg: [1, 1, 0],
  up: [0, 1, 0],
  a0: [256, 257, 258],
};
const kEnd = { k: 'end', spans: 3, instants: 0, counters: 0, states: 0, packets: 0, messages: 0, t_end: 900 };

describe('native format', () => {
  test('a block means what the format says', async () => {
    const t = await open(lines(kHeader, kPoint, kSpans, kEnd));
    expect(t.diagnostics).toEqual([]);
    expect(t.complete).toBe(true);
    const s = t.spans;
    const at = [7, 8, 10].map((id) => spanById(t, id));
    expect(at.map((i) => s.start[i])).toEqual([110, 100, 150]);
    expect(at.map((i) => s.dur[i])).toEqual([5, 6, 700]);
    expect(at.map((i) => s.wait[i])).toEqual([0, 2, 0]);
    expect(at.map((i) => s.parent[i])).toEqual([0, 7, 0]);
    expect(at.map((i) => s.args[0][i])).toEqual([256, 257, 258]);
    expect(at.map((i) => s.args[1][i])).toEqual([0, 0, 0]);
    expect([t.t0, t.t1]).toEqual([100, 850]);
    expect(t.header.hosts).toEqual(['host0', 'host1']);
  });

  test('chunks may end anywhere', async () => {
    const text = nativeText(40);
    const whole = await open(text);
    expect(whole.diagnostics).toEqual([]);
    expect(whole.spans.n).toBe(40 * kSpansPerMessage);
    for (const chunk of [1, 7, 100, 4096]) {
      const t = await open(text, chunk);
      expect(t.spans).toEqual(whole.spans);
      expect(t.messages).toEqual(whole.messages);
    }
  });

  test('a file cut at any byte shows what was complete and says where it ends', async () => {
    const text = nativeText(3);
    const first = text.indexOf('\n') + 1;
    for (let cut = first; cut < text.length - 1; cut += 41) {
      const t = await open(text.slice(0, cut));
      const told = t.diagnostics
        .filter((d) => d.severity === 'warning')
        .map((d) => d.text)
        .join(' ');
      expect(told).toContain('no end record');
      if (text[cut - 1] !== '\n' && text[cut] !== '\n') expect(told).toContain(`at byte ${cut}`);
      expect(t.complete).toBe(false);
    }
    await expect(open(text.slice(0, first - 20))).rejects.toThrow(/cut short in its header, at byte \d+/);
  });

  test('only the newline at the end is missing', async () => {
    const t = await open(lines(kHeader, kPoint, kSpans, kEnd).trimEnd());
    expect(t.complete).toBe(true);
    expect(t.diagnostics).toEqual([]);
  });

  test('broken lines are named and skipped, the others count', async () => {
    const t = await open(
      lines(
        kHeader,
        kPoint,
        '{"k":"span","n":3,',
        kSpans,
        { ...kSpans, dur: [1, 2] },
        { k: 'span', n: 1, id0: 90 },
        { k: 'new' },
        kEnd,
      ),
    );
    expect(t.spans.n).toBe(3);
    const said = t.diagnostics.map((d) => `${d.severity}: ${d.text}`);
    expect(said[0]).toMatch(/^error: line 3 \(byte \d+\): not valid JSON .*skipped$/);
    expect(said[1]).toMatch(/^error: line 5 \(byte \d+\): column “dur” has 2 values, 3 are expected; skipped$/);
    expect(said[2]).toMatch(/^error: line 6 .*t0 is missing/);
    expect(said[3]).toMatch(/^note: records of kind “new” \(line 7\)/);
  });

  test('the end record is checked', async () => {
    const t = await open(lines(kHeader, kPoint, kSpans, { ...kEnd, spans: 4 }));
    expect(t.diagnostics[0].text).toBe('the end record speaks of 4 spans, 3 could be read');
  });

  test('negative numbers that travel as 64-bit unsigned ones', async () => {
    const text = lines(kHeader, kPoint, kSpans, kEnd).replace('"a0":[256', '"a0":[18446744073709551594');
    const t = await open(text);
    expect(t.spans.args[0][spanById(t, 7)]).toBe(-22);
  });

  test('what is lost of the declarations is made up for', async () => {
    const t = await open(lines(kHeader, { ...kSpans, lane: [0, 1, 9], point: [0, 0, 4] }, kEnd));
    expect(t.lanes[9].path).toBe('lane 9');
    expect(t.points[4].name).toBe('point 4');
    expect(t.diagnostics.some((d) => d.text.includes('nowhere declared'))).toBe(true);
  });

  test('absurd numbers do not become tables', async () => {
    const t = await open(
      lines(
        kHeader,
        kPoint,
        { ...kSpans, lane: [0, 1, 4e9] },
        { ...kSpans, id0: 1e12 },
        { ...kSpans, msg: [0, 1, -3] },
        kSpans,
        kEnd,
      ),
    );
    expect(t.spans.n).toBe(3);
    expect(t.diagnostics.filter((d) => d.severity === 'error')).toHaveLength(3);
  });

  test('a header and nothing else is an empty trace', async () => {
    const t = await open(lines(kHeader, { ...kEnd, spans: 0 }));
    expect([t.spans.n, t.messages.n, t.complete, t.diagnostics.length]).toEqual([0, 0, true, 0]);
  });

  test('raw bytes of a large trace are those of its records', async () => {
    const t = await open(nativeText(300, true), 5000);
    expect(t.diagnostics).toEqual([]);
    let seen = 0;
    for (let i = 0; i < t.spans.n; ++i) {
      const want = spanBytes(
        t.points[t.spans.point[i]].name,
        t.spans.id[i],
        t.spans.args.map((a) => a[i]),
      );
      expect(Buffer.from(bytesAt(t.pieces, t.spans.bytes[i]) ?? []).toString('hex')).toBe(want);
      if (want !== '') ++seen;
    }
    expect(seen).toBe(300 * 14);
    const cqe = Array.from({ length: t.spans.n }, (_, i) => i).find((i) => t.points[t.spans.point[i]].name === 'hca.cqe')!;
    const decoded = decodeBytes('cqe', bytesAt(t.pieces, t.spans.bytes[cqe])!);
    expect(decoded.fields.find((f) => f.name === 'QP number')!.value).toBe(String(t.spans.args[1][cqe]));
    expect(t.messages.wrId![t.messageRow[7]]).toBe(21);
  });

  test('messages carry their stages; raw bytes stay with their records', async () => {
    const packet = {
      k: 'packet',
      n: 2,
      t0: 5,
      t1: 9,
      t: [4, -4],
      lane: [2, 2],
      msg: [1, 1],
      len: [64, 66],
      tx: [1, 0],
      bytes: ['00ff', ''],
    };
    const msg = { k: 'msg', n: 1, t0: 50, t1: 90, id: [1], total: [40], op: [2], bytes: [64], post: [10], poll: [30] };
    const t = await open(lines(kHeader, kPoint, kSpans, packet, msg, { ...kEnd, packets: 2, messages: 1 }));
    expect(t.messages.stages.map((s) => s[0])).toEqual([10, 0, 30]);
    expect(t.messages.total[0]).toBe(40);
    expect(Array.from(t.packets.t)).toEqual([5, 9]);
    expect(bytesAt(t.pieces, t.packets.bytes[1])).toEqual(new Uint8Array([0, 255]));
    expect(bytesAt(t.pieces, t.packets.bytes[0])).toBeNull();
    expect(t.messages.wrId).toBeNull();
    expect(t.messages.qpn[0]).toBe(256);
    const more = await open(lines(kHeader, { ...msg, wr_id: [77], qpn: [300], host: [1] }, { ...kEnd, spans: 0, messages: 1 }));
    expect([more.messages.wrId![0], more.messages.qpn[0], more.messages.host[0]]).toEqual([77, 300, 1]);
  });
});

describe('what is opened', () => {
  test('gzip', async () => {
    const t = await open(gzipSync(nativeText(5)));
    expect(t.spans.n).toBe(5 * kSpansPerMessage);
    expect(t.diagnostics).toEqual([]);
  });
  test('gzip that is cut short gives what came before the cut', async () => {
    const whole = gzipSync(nativeText(4000), { level: 1 });
    const t = await open(new Uint8Array(whole.subarray(0, Math.floor(whole.length * 0.7))));
    expect(t.spans.n).toBeGreaterThan(0);
    expect(t.diagnostics.map((d) => d.text).join(' ')).toMatch(/compressed file is damaged or cut short/);
  });
  test('other files are refused with a reason', async () => {
    await expect(open('')).rejects.toThrow('test is empty (0 bytes)');
    await expect(open('{"format":"rdmasim-cols/2","time":"ps"}\n')).rejects.toThrow(
      /format “rdmasim-cols\/2”; this viewer reads rdmasim-cols\/1/,
    );
    await expect(open('[{"ph":"X","ts":1}]')).rejects.toThrow(/Chrome JSON of another program/);
    await expect(open('hello')).rejects.toThrow(/is no trace: it begins with "hello"/);
    await expect(open(gzipSync('hello'))).rejects.toThrow(/is no trace/);
    await expect(open(new Uint8Array([0x1f, 0x8b, 1, 2, 3]))).rejects.toThrow();
  });
  test('a trace of the simulator', async () => {
    const t = await open(fixture('lost_packet_waits_for_the_ack_timeout.jsonl.gz'));
    expect(t.diagnostics.filter((d) => d.severity !== 'note')).toEqual([]);
    expect(t.header.scenario).toBe('lost_packet_waits_for_the_ack_timeout');
    expect(t.messages.n).toBeGreaterThan(0);
    for (let r = 0; r < t.messages.n; ++r) {
      expect(t.messages.stages.reduce((sum, s) => sum + s[r], 0)).toBe(t.messages.total[r]);
    }
  });
});
