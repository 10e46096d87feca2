// SPDX-License-Identifier: Apache-2.0
// Damaged files of every kind: whatever is done to a trace, it is either refused with a reason that names the file, or shown with what
// is left of it; nothing that is computed from it fails.
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { compare } from '../../src/model/compare';
import { conversations } from '../../src/model/ladder';
import { orderLanes, usedLanes } from '../../src/model/lanes';
import { lifeline } from '../../src/model/lifeline';
import { findProblems } from '../../src/model/problems';
import { matchInstants, matchMessages, matchSpans, parseQuery } from '../../src/model/search';
import type { Trace } from '../../src/model/types';
import { stagesOf, stepsOf } from '../../src/model/waterfall';
import { kLight, pointColors } from '../../src/view/colors';
import { drawTimeline } from '../../src/view/draw';
import { layOut } from '../../src/view/layout';
import { SvgPainter } from '../../src/view/painter';
import { Scale } from '../../src/view/viewport';
import { chromeText, nativeText } from '../synthetic.mjs';
import { kHeader, lines, open } from './open';

/** Everything that the page computes of a trace when it is opened and looked at. */
function use(t: Trace): void {
  expect(Number.isFinite(t.t0) && Number.isFinite(t.t1) && t.t1 >= t.t0).toBe(true);
  const problems = findProblems(t);
  const used = usedLanes(t);
  const layout = layOut(
    t,
    orderLanes(t, (l) => used[l] === 1),
  );
  const query = parseQuery('qpn:256 opcode:ack');
  matchSpans(t, query);
  matchInstants(t, query);
  matchMessages(t, query);
  conversations(t);
  compare(t, t);
  const msg = t.messages.n > 0 ? t.messages.id[0] : 0;
  const line = msg > 0 ? lifeline(t, msg) : null;
  if (line) {
    stepsOf(t, line);
    const stages = stagesOf(t, t.messageRow[msg]);
    if (stages) expect(stages.sum).toBe(stages.total);
  }
  const p = new SvgPainter(900, 500);
  drawTimeline(p, {
    trace: t,
    layout,
    scale: new Scale({ from: t.t0, to: Math.max(t.t1, t.t0 + 1000) }, 196, 700),
    height: 500,
    scrollY: 0,
    palette: kLight,
    colors: pointColors(t.points, kLight),
    matches: null,
    matchingInstants: null,
    line,
    selected: null,
    hover: -1,
    problems: Float64Array.from(problems.map((e) => e.t)),
    cursor: (t.t0 + t.t1) / 2,
    measure: null,
    title: '',
  });
  expect(p.document('')).not.toMatch(/NaN|Infinity|undefined/);
}

/** What became of a file: '' when it was shown without a complaint. */
async function outcome(data: string | Uint8Array): Promise<string> {
  let t: Trace;
  try {
    t = await open(data, 4096, 'broken.jsonl');
  } catch (e) {
    expect((e as Error).message).toContain('broken.jsonl');
    return (e as Error).message;
  }
  use(t);
  return t.diagnostics.map((d) => d.text).join('\n');
}

/** Numbers below n that are always the same. */
function random(seed: number): (n: number) => number {
  let x = seed * 2654435761 + 1;
  return (n) => {
    x = Math.imul(x ^ (x >>> 15), 2246822519) + 0x9e3779b9;
    return ((x ^ (x >>> 13)) >>> 0) % n;
  };
}

const kValues = [
  '-1',
  '1e999',
  '1e300',
  '0.5',
  'null',
  '"x"',
  '[]',
  '{}',
  'NaN',
  '18446744073709551615',
  '4294967296',
  'true',
  '',
];

function damage(text: string, seed: number): string {
  const rnd = random(seed);
  const rows = text.split('\n');
  const row = rnd(rows.length);
  const at = rnd(text.length);
  switch (seed % 6) {
    case 0:
      return text.slice(0, at) + text.slice(at + 1 + rnd(40));
    case 1:
      return text.slice(0, at) + String.fromCharCode(1 + rnd(255)) + text.slice(at + 1);
    case 2:
      rows.splice(row, 0, rows[rnd(rows.length)]);
      return rows.join('\n');
    case 3:
      rows.splice(row, 1);
      return rows.join('\n');
    case 4: {
      const numbers = [...rows[row].matchAll(/-?\d+/g)];
      if (numbers.length === 0) return text.slice(0, at);
      const m = numbers[rnd(numbers.length)];
      rows[row] = rows[row].slice(0, m.index) + kValues[rnd(kValues.length)] + rows[row].slice(m.index! + m[0].length);
      return rows.join('\n');
    }
    default: {
      const keys = [...rows[row].matchAll(/"(\w+)":/g)];
      if (keys.length === 0) return text.slice(0, at);
      const m = keys[rnd(keys.length)];
      rows[row] = rows[row].slice(0, m.index) + `"${m[1]}_":` + rows[row].slice(m.index! + m[0].length);
      return rows.join('\n');
    }
  }
}

describe('damaged files', () => {
  test.each([
    ['native', nativeText(12)],
    ['chrome', chromeText(12)],
  ])('%s: 300 kinds of damage', async (_, text) => {
    let complaints = 0;
    for (let seed = 0; seed < 300; ++seed) if ((await outcome(damage(text, seed))) !== '') ++complaints;
    expect(complaints).toBeGreaterThan(150);
  });
  test('binary garbage, alone, packed, and behind a good beginning', async () => {
    const rnd = random(7);
    const garbage = Uint8Array.from({ length: 5000 }, () => rnd(256));
    expect(await outcome(garbage)).toMatch(/is no trace|broken/);
    expect(await outcome(gzipSync(garbage))).toMatch(/is no trace|broken/);
    expect(await outcome(gzipSync(nativeText(20)).subarray(0, 200))).toMatch(/broken|damaged/);
    const mixed = new Uint8Array([...new TextEncoder().encode(nativeText(3)), ...garbage]);
    expect(await outcome(mixed)).toMatch(/line \d+ \(byte \d+\)|cut short/);
  });
  const point = { k: 'point', id: 0, name: 'cpu.post', cat: 'cpu', kind: 'span', args: [] };
  const block = { k: 'span', n: 2, t0: 0, t1: 9, id0: 1, ts: [0, 5], dur: [1, 1], lane: [0, 0] };
  test.each([
    ['a column of text', { ...block, dur: ['a', 'b'] }, 'column “dur” holds "a"; a number is expected'],
    ['a column with null', { ...block, ts: [0, null] }, 'column “ts” holds null; a number is expected'],
    ['no column', { ...block, dur: 7 }, 'column “dur” is no list of 2 numbers'],
    ['a count that is none', { ...block, n: 'two' }, 'n is not an integer'],
    ['a count that is huge', { ...block, n: 1e9 }, 'a block of 1000000000 records'],
    ['a lane beyond all', { ...block, lane: [0, 1e12] }, 'column “lane” holds 1000000000000'],
    ['bytes that are none', { ...block, bytes: ['0x', ''] }, 'column “bytes” holds "0x"; hexadecimal text is expected'],
    ['a negative duration', { ...block, dur: [1, -4] }, 'column “dur” holds -4'],
    ['a time beyond all', { ...block, t0: 1e300 }, 't0 is 1e+300'],
  ])('%s is named with its line', async (_, bad, text) => {
    const said = await outcome(lines(kHeader, bad, point, block));
    expect(said).toContain('line 2 (byte ');
    expect(said).toContain(text);
  });
  test('columns, points and kinds of the future are passed over', async () => {
    const future = { ...block, colour: [1, 2], shape: ['round', ''], deep: { a: [1] } };
    const t = await open(lines(kHeader, { k: 'weather', n: 1 }, point, future, { k: 'end', spans: 2, more: 'x' }));
    use(t);
    expect(t.spans.n).toBe(2);
    expect(t.diagnostics.map((d) => `${d.severity} ${d.text}`)).toEqual([
      'note records of kind “weather” (line 2) are not known to this viewer',
    ]);
  });
  test('ids that occur twice', async () => {
    const msg = { k: 'msg', n: 2, t0: 0, t1: 9, id: [1, 1], total: [5, 6], op: [2, 2] };
    const t = await open(lines(kHeader, point, { ...block, id: [0, -1] }, msg, { k: 'end' }));
    use(t);
    expect(t.diagnostics.map((d) => d.text)).toEqual([
      '1 spans have an id that another span has too: arrows lead to the last one',
      '1 messages have an id that another message has too: the last record counts',
    ]);
    expect(t.messages.n).toBe(1);
    expect(t.messages.total[0]).toBe(6);
  });
});
