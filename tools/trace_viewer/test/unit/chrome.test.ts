// SPDX-License-Identifier: Apache-2.0
// Reader of our Chrome JSON: the same trace in both formats gives the same lanes, causes and messages, to the nanosecond.
import { describe, expect, test } from 'vitest';
import { chromeText, nativeText } from '../synthetic.mjs';
import { Scanner } from '../../src/parse/scanner';
import { fixture, open } from './open';

const toNs = (ps: number) => Math.floor((ps + 500) / 1000) * 1000;

describe('Chrome JSON', () => {
  test('says the same as the native trace', async () => {
    const native = await open(nativeText(60));
    const chrome = await open(chromeText(60));
    expect(chrome.complete).toBe(true);
    expect(chrome.diagnostics.filter((d) => d.severity !== 'note')).toEqual([]);
    expect(chrome.spans.n).toBe(native.spans.n);
    expect(chrome.messages.n).toBe(native.messages.n);
    expect(chrome.header.hosts).toEqual(native.header.hosts);
    for (let id = 1; id <= native.spans.n; ++id) {
      const a = native.byId[id];
      const b = chrome.byId[id];
      expect(chrome.spans.start[b]).toBe(toNs(native.spans.start[a]));
      expect(chrome.spans.start[b] + chrome.spans.dur[b]).toBe(toNs(native.spans.start[a] + native.spans.dur[a]));
      expect(chrome.spans.parent[b]).toBe(native.spans.parent[a]);
      expect(chrome.spans.msg[b]).toBe(native.spans.msg[a]);
      expect(chrome.spans.wait[b]).toBe(native.spans.wait[a]);
      expect(chrome.lanes[chrome.spans.lane[b]].path).toBe(native.lanes[native.spans.lane[a]].path);
      const point = native.points[native.spans.point[a]];
      expect(chrome.points[chrome.spans.point[b]]).toMatchObject({ name: point.name, args: point.args });
      point.args.forEach((_, k) => expect(chrome.spans.args[k][b]).toBe(native.spans.args[k][a]));
    }
    for (let r = 0; r < native.messages.n; ++r) {
      expect(chrome.messages.qpn[r]).toBe(native.messages.qpn[r]);
      expect(Math.abs(chrome.messages.total[r] - native.messages.total[r])).toBeLessThan(1001);
    }
    const count = (t: typeof native) => t.counters.series.map((s) => [t.lanes[s.lane].path, s.to - s.from, s.max]).sort();
    expect(count(chrome)).toEqual(count(native));
    expect(chrome.states.n).toBe(native.states.n);
    const lane = chrome.states.series[0].lane;
    expect(chrome.lanes[lane].states).toContain('RTS');
    expect(chrome.resolution).toBe(1000);
  });

  test('stages and numbers of a work request', async () => {
    const text = chromeText(3).replace(
      /("name":"WR","id":2,"ts":([\d.]+))\}/,
      '$1,"args":{"wr_id":77,"qpn":300,"host":1,"status":5,"stages":{"cpu_post":65499,"wire":2}}}',
    );
    const t = await open(text);
    expect(t.diagnostics.filter((d) => d.severity !== 'note')).toEqual([]);
    expect(t.header.stages).toEqual(['cpu_post', 'wire']);
    const m = t.messages;
    const r = t.messageRow[2];
    expect([m.wrId![r], m.qpn[r], m.host[r], m.wcStatus[r]]).toEqual([77, 300, 1, 5]);
    expect(m.stages.map((s) => s[r])).toEqual([65_499, 2]);
    // Not the latency: the waterfall will show the difference.
    expect(m.total[r]).toBeGreaterThan(1e6);
    expect(m.stages.map((s) => s[t.messageRow[1]])).toEqual([0, 0]);
  });
  test('stages make the latency exact', async () => {
    const whole = await open(chromeText(3));
    const ns = whole.messages.total[whole.messageRow[2]];
    const text = chromeText(3).replace(/("name":"WR","id":2,"ts":[\d.]+)\}/, `$1,"args":{"stages":{"a":${ns - 1000},"b":499}}}`);
    const t = await open(text);
    expect(t.messages.total[t.messageRow[2]]).toBe(ns - 501);
  });

  test('chunks may end anywhere', async () => {
    const text = chromeText(6);
    const whole = await open(text);
    for (const chunk of [1, 13, 1000]) expect((await open(text, chunk)).spans).toEqual(whole.spans);
  });

  test('cut at any byte', async () => {
    const text = chromeText(2);
    for (let cut = 210; cut < text.length - 3; cut += 97) {
      const t = await open(text.slice(0, cut));
      expect(t.complete).toBe(false);
      expect(t.diagnostics.map((d) => d.text).join(' ')).toContain('cut short');
    }
  });

  test('broken lines are named and skipped', async () => {
    const rows = chromeText(2).split('\n');
    const at = rows.findIndex((r) => r.startsWith('{"ph":"X"'));
    rows.splice(at, 0, '{"ph":"X","pid":2,"tid":', '{"ph":"Q","pid":2,"ts":1},', 'nonsense,');
    const t = await open(rows.join('\n'));
    expect(t.spans.n).toBe(58);
    const said = t.diagnostics.filter((d) => d.severity === 'error').map((d) => d.text);
    expect(said).toHaveLength(3);
    expect(said[0]).toMatch(new RegExp(`^line ${at + 1} \\(byte \\d+\\): number expected at column 25; skipped`));
    expect(said[1]).toContain('phase “Q” is not known');
  });

  test('a trace of the simulator agrees with its native twin', async () => {
    const chrome = await open(fixture('lost_packet_waits_for_the_ack_timeout.json.gz'));
    const native = await open(fixture('lost_packet_waits_for_the_ack_timeout.jsonl.gz'));
    expect(chrome.diagnostics.filter((d) => d.severity !== 'note')).toEqual([]);
    expect([chrome.spans.n, chrome.instants.n, chrome.counters.n, chrome.messages.n]).toEqual([
      native.spans.n,
      native.instants.n,
      native.counters.n,
      native.messages.n,
    ]);
    // Recorded causes survive, but for those that begin after their effect (a wait that they end): arrows cannot point back in
    // time. Where none is recorded, the writer's arrows add likely ones.
    let recorded = 0;
    for (let i = 0; i < native.spans.n; ++i) {
      const cause = native.byId[native.spans.parent[i]];
      if (native.spans.parent[i] === 0 || native.spans.start[cause] > native.spans.start[i]) continue;
      ++recorded;
      expect(chrome.spans.parent[chrome.byId[native.spans.id[i]]]).toBe(native.spans.parent[i]);
    }
    expect(recorded).toBeGreaterThan(1000);
  });
});

describe('scanner', () => {
  const scan = (text: string) => {
    const s = new Scanner();
    const bytes = new TextEncoder().encode(text);
    s.set(bytes, 0, bytes.length);
    return s;
  };
  test('numbers', () => {
    expect(scan('1301755.574}').microseconds()).toBe(1_301_755_574_000);
    expect(scan('0.08,').microseconds()).toBe(80_000);
    expect(scan('-12').integer()).toBe(-12);
    expect(scan('18446744073709551594').integer()).toBe(-22);
    expect(scan('140737485172736').integer()).toBe(140737485172736);
    expect(() => scan('x').integer()).toThrow('number expected at column 1');
  });
  test('strings', () => {
    expect(scan('"a\\"b\\u0041"').string()).toBe('a"bA');
    const s = scan('"pcie.MRd""pcie.MRd""µ"');
    expect([s.string(), s.string(), s.string()]).toEqual(['pcie.MRd', 'pcie.MRd', 'µ']);
    expect(() => scan('"abc').string()).toThrow('string without an end');
  });
});
