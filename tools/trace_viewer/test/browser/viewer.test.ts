// SPDX-License-Identifier: Apache-2.0
// The built page in Chromium, opened from disk: loading, moving, selecting, searching, comparing, exporting, embedding, bad files.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Viewer } from '../harness.mjs';
import { kPage, launch, load, openViewer, whyNot } from '../harness.mjs';
import { chromeText, nativeText } from '../synthetic.mjs';

const data = (name: string) => fileURLToPath(new URL(`../data/${name}`, import.meta.url));
const kLost = data('lost_packet_waits_for_the_ack_timeout.jsonl.gz');
const kMessages = 200;

let browser: Browser;
let dir: string;
let v: Viewer;
let page: Page;

const file = (name: string, text: string | Uint8Array) => {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
};
const psOf = (text: string | null) => Number((text ?? '').replace(/[^\d−-]/g, '').replace('−', '-'));
/** Length of the visible window, in ps. */
const windowLength = () => page.evaluate(() => {
  const w = (window as any).rdmasim.state.view.value;
  return w.to - w.from;
});

beforeAll(async () => {
  const missing = whyNot();
  if (missing) throw new Error(`the browser tests cannot run: ${missing}; npm run test:unit needs no browser`);
  dir = mkdtempSync(join(tmpdir(), 'trace_viewer_'));
  file('native.jsonl', nativeText(kMessages));
  file('chrome.json', chromeText(kMessages));
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  if (dir) rmSync(dir, { recursive: true });
});
beforeEach(async () => {
  v = await openViewer(browser);
  page = v.page;
});
afterEach(async () => {
  expect(v.errors).toEqual([]);
  await v.close();
});

describe('loading', () => {
  test('says what to do before there is a trace', async () => {
    expect(await page.textContent('main')).toContain('rdmasim run SCENARIO --trace json --out DIR');
  });
  test('native, compressed and Chrome JSON', async () => {
    for (const [name, text] of [['native.jsonl', ''], ['x.jsonl.gz', nativeText(kMessages)], ['chrome.json', '']] as const) {
      const path = text ? file(name, gzipSync(text)) : join(dir, name);
      await load(page, path);
      expect(await page.textContent('#message-count')).toBe('200 of 200 messages');
      expect(await page.locator('#failure, #diagnostics').count()).toBe(0);
    }
  });
  test('the same file twice, and another one after it', async () => {
    await load(page, join(dir, 'native.jsonl'));
    await load(page, join(dir, 'native.jsonl'));
    await load(page, kLost);
    expect(await page.locator('.message-row[data-message]').count()).toBeLessThan(10);
  });
  test('dropped files', async () => {
    const text = nativeText(3);
    await page.evaluate((t) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([t], 'dropped.jsonl'));
      document.querySelector('.page')!.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));
    }, text);
    await page.waitForSelector('#message-count');
    expect(await page.textContent('#message-count')).toBe('3 of 3 messages');
  });
});

describe('bad files', () => {
  test.each([
    ['empty.jsonl', '', 'empty.jsonl is empty (0 bytes)'],
    ['text.txt', 'hello world', 'is no trace: it begins with "hello world"'],
    ['next.jsonl', '{"format":"rdmasim-cols/2"}\n', 'format “rdmasim-cols/2”; this viewer reads rdmasim-cols/1'],
    ['other.json', '{"traceEvents":[{"ph":"X","ts":1,"pid":1}]}', 'Chrome JSON of another program'],
    ['head.jsonl', nativeText(1).slice(0, 300), 'cut short in its header, at byte 300'],
  ])('%s is refused with a reason', async (name, text, reason) => {
    await load(page, file(name, text));
    expect(await page.textContent('#failure')).toContain(reason);
    expect(await page.locator('main.welcome').count()).toBe(1);
  });
  test('a refused file leaves the open trace alone', async () => {
    await load(page, join(dir, 'native.jsonl'));
    await load(page, file('bad.txt', 'bad'));
    expect(await page.textContent('#failure')).toContain('is no trace');
    expect(await page.textContent('#message-count')).toBe('200 of 200 messages');
    await page.click('#failure button');
    expect(await page.locator('#failure').count()).toBe(0);
  });
  test('a file cut short is shown up to the cut, and says so', async () => {
    const text = nativeText(4000);
    const cut = text.lastIndexOf('{"k":"span"') + 1000;
    await load(page, file('cut.jsonl', text.slice(0, cut)));
    expect(await page.textContent('#diagnostics')).toContain(`cut short in line`);
    expect(await page.evaluate(() => (window as any).rdmasim.state.a.value.trace.spans.n)).toBeGreaterThan(50_000);
    await page.click('#diagnostics button');
    expect(await page.textContent('.diagnostics')).toContain(`at byte ${cut}`);
  });
  test('broken lines are listed', async () => {
    const rows = nativeText(50).split('\n');
    rows.splice(5, 0, '{"k":"point","id":');
    await load(page, file('broken.jsonl', rows.join('\n')));
    expect(await page.textContent('#diagnostics')).toMatch(/broken\.jsonl: line 6 \(byte \d+\): not valid JSON/);
    expect(await page.textContent('#message-count')).toBe('50 of 50 messages');
  });
  test('a trace without records', async () => {
    const head = nativeText(1).split('\n')[0];
    await load(page, file('none.jsonl', `${head}\n{"k":"end","spans":0,"instants":0,"counters":0,"states":0,"packets":0,"messages":0,"t_end":0}\n`));
    expect(await page.textContent('.bottom')).toContain('The trace holds no messages.');
    await page.keyboard.press('n');
    await page.keyboard.press('w');
    for (const tab of ['Problems', 'Latency', 'Compare', 'Lanes', 'File']) await page.getByRole('tab', { name: tab }).click();
  });
});

describe('moving', () => {
  beforeEach(async () => {
    await load(page, join(dir, 'native.jsonl'));
  });
  test('keys, wheel and drag', async () => {
    const whole = await windowLength();
    await page.keyboard.press('w');
    expect(await windowLength()).toBeCloseTo(whole * 0.7, -3);
    await page.keyboard.press('-');
    await page.keyboard.press('0');
    expect(await windowLength()).toBe(whole);
    await page.mouse.move(600, 200);
    await page.mouse.wheel(0, -300);
    await expect.poll(windowLength).toBeLessThan(whole * 0.7);
    const from = () => page.evaluate(() => (window as any).rdmasim.state.view.value.from);
    const before = await from();
    await page.mouse.down();
    await page.mouse.move(500, 200, { steps: 4 });
    await page.mouse.up();
    expect(await from()).toBeGreaterThan(before);
    const moved = await from();
    await page.keyboard.press('ArrowLeft');
    expect(await from()).toBeLessThan(moved);
    expect(await page.textContent('#window')).toMatch(/[µm]s$/);
  });
  test('two fingers', async () => {
    const touch = await openViewer(browser, { touch: true });
    await load(touch.page, join(dir, 'native.jsonl'));
    const length = () => touch.page.evaluate(() => (window as any).rdmasim.state.view.value.to - (window as any).rdmasim.state.view.value.from);
    const before = await length();
    const client = await touch.page.context().newCDPSession(touch.page);
    const send = (type: string, gap: number) =>
      client.send('Input.dispatchTouchEvent', { type: type as 'touchStart', touchPoints: gap < 0 ? [] : [{ x: 540 - gap, y: 250, id: 1 }, { x: 540 + gap, y: 250, id: 2 }] });
    await send('touchStart', 40);
    for (const gap of [60, 90, 130]) await send('touchMove', gap);
    await send('touchEnd', -1);
    expect(await length()).toBeLessThan(before * 0.5);
    expect(touch.errors).toEqual([]);
    await touch.close();
  });
  test('measuring and zooming to it', async () => {
    await page.keyboard.down('Shift');
    await page.mouse.move(400, 200);
    await page.mouse.down();
    await page.mouse.move(500, 200, { steps: 3 });
    expect(await page.textContent('.tip')).toMatch(/^Δ [\d.]+ ns/);
    await page.mouse.up();
    await page.keyboard.up('Shift');
    const before = await windowLength();
    await page.keyboard.press('z');
    expect(await windowLength()).toBeLessThan(before * 0.2);
  });
});

describe('messages', () => {
  test('click a WR: its life-line, and a waterfall that sums to its latency', async () => {
    await load(page, join(dir, 'native.jsonl'));
    await page.click('.message-row[data-message="5"]');
    expect(await page.textContent('#message-panel h2')).toContain('WR 5: SEND 4096 bytes');
    const cells = await page.locator('#waterfall tbody td[data-ps]').evaluateAll((all) => all.map((c) => Number((c as HTMLElement).dataset.ps)));
    const sum = Number(await page.getAttribute('#stage-sum', 'data-ps'));
    const total = await page.evaluate(() => {
      const t = (window as any).rdmasim.state.a.value.trace;
      return t.messages.total[t.messageRow[5]];
    });
    expect(cells.reduce((x, y) => x + y, 0)).toBe(total);
    expect(sum).toBe(total);
    expect(psOf(await page.textContent('#stage-sum'))).toBe(total);
    expect(await page.textContent('#waterfall tfoot')).toContain('= latency');
    expect(await page.textContent('#message-panel')).toContain('host1 → host0');
    const arrows = await page.evaluate(() => (window as any).rdmasim.state.line.value.arrows.length);
    expect(arrows).toBe(28);
    expect(await page.locator('#steps tbody tr').count()).toBeGreaterThan(15);
    // n and p step through the table.
    await page.keyboard.press('n');
    expect(await page.getAttribute('#message-panel', 'data-message')).toBe('6');
    await page.keyboard.press('p');
    await page.keyboard.press('p');
    expect(await page.getAttribute('#message-panel', 'data-message')).toBe('4');
    const lanes = await page.evaluate(() => (window as any).rdmasim.state.groups.value.flatMap((g: any) => g.lanes).length);
    await page.keyboard.press('m');
    expect(await page.evaluate(() => (window as any).rdmasim.state.groups.value.flatMap((g: any) => g.lanes).length)).toBeLessThan(lanes);
    await page.keyboard.press('Escape');
    expect(await page.locator('#message-panel').count()).toBe(0);
  });

  test('click a span in the picture', async () => {
    await load(page, join(dir, 'native.jsonl'));
    const at = await page.evaluate(() => {
      const { instances, setView, state } = (window as any).rdmasim;
      const t = state.a.value.trace;
      const i = t.byId[29 * 21 + 1];
      setView({ from: t.spans.start[i] - 2e5, to: t.spans.start[i] + 2e6 });
      const view = instances.get('a');
      view.scrollY = 0;
      view.paint();
      const strip = view.layout.strips.find((s: any) => s.kind === 'spans' && s.lane === t.spans.lane[i]);
      const box = view.canvas.getBoundingClientRect();
      return { x: box.left + view.scale.x(t.spans.start[i] + t.spans.dur[i] / 2), y: box.top + 26 + strip.y + strip.h / 2 - view.scrollY, msg: t.spans.msg[i] };
    });
    await page.mouse.move(at.x, at.y);
    expect(await page.textContent('.tip')).toContain(`cpu.post, message ${at.msg}`);
    await page.mouse.click(at.x, at.y);
    expect(await page.getAttribute('#message-panel', 'data-message')).toBe(String(at.msg));
    await page.getByRole('tab', { name: 'Record' }).click();
    expect(await page.textContent('#inspector')).toContain('cpu.post');
    expect(await page.textContent('#inspector')).toMatch(/qpn\d+/);
    await page.locator('#inspector dd button', { hasText: 'wc_flush' }).click();
    expect(await page.textContent('#inspector h2')).toBe('cpu.wc_flush');
  });

  test('sorting, and the keyboard in the table', async () => {
    await load(page, join(dir, 'native.jsonl'));
    await page.getByRole('columnheader', { name: 'latency, ns' }).click();
    await page.getByRole('columnheader', { name: 'latency, ns' }).click();
    const first = await page.locator('.message-row[data-message]').first().locator('[role=gridcell]').nth(8).textContent();
    const most = await page.evaluate(() => Math.max(...(window as any).rdmasim.state.a.value.trace.messages.total));
    expect(psOf(first)).toBe(most);
    await page.focus('.list.messages');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    const second = await page.locator('.message-row[data-message]').nth(1).getAttribute('data-message');
    expect(await page.getAttribute('#message-panel', 'data-message')).toBe(second);
    expect(await page.getAttribute(`.message-row[data-message="${second}"]`, 'aria-selected')).toBe('true');
  });

  test('Chrome JSON says why there is no waterfall', async () => {
    await load(page, join(dir, 'chrome.json'));
    await page.click('.message-row[data-message="5"]');
    expect(await page.textContent('#message-panel')).toContain('the native trace does');
    expect(await page.locator('#steps tbody tr').count()).toBeGreaterThan(15);
  });

  test('latency: dragging over the histogram filters the table', async () => {
    await load(page, join(dir, 'native.jsonl'));
    await page.getByRole('tab', { name: 'Latency' }).click();
    const over = page.locator('.chart .u-over').first();
    await over.waitFor();
    const box = (await over.boundingBox())!;
    await page.mouse.move(box.x + box.width * 0.6, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 2, box.y + 30, { steps: 5 });
    await page.mouse.up();
    await page.getByRole('tab', { name: 'Messages' }).click();
    const text = (await page.textContent('#message-count'))!;
    expect(Number(text.split(' ')[0])).toBeGreaterThan(0);
    expect(Number(text.split(' ')[0])).toBeLessThan(200);
    await page.locator('.bar button', { hasText: 'latency' }).click();
    expect(await page.textContent('#message-count')).toBe('200 of 200 messages');
  });
});

describe('search and problems', () => {
  test('search filters the table and steps through the picture', async () => {
    await load(page, join(dir, 'native.jsonl'));
    await page.keyboard.press('/');
    await page.keyboard.type('qpn:257 opcode:acknowledge');
    expect(await page.textContent('#found')).toContain('39 spans');
    expect(await page.textContent('#message-count')).toBe('13 of 200 messages');
    await page.fill('#search', 'opcode:rdma_read');
    expect(await page.textContent('.bottom')).toContain('No message matches the search.');
    await page.fill('#search', 'qpn:257');
    expect(await page.textContent('#message-count')).toBe('13 of 200 messages');
    await page.keyboard.press('Enter');
    const sel = () => page.evaluate(() => {
      const { a, selected } = (window as any).rdmasim.state;
      const i = selected.value.index;
      return { t: a.value.trace.spans.start[i], msg: a.value.trace.spans.msg[i] };
    });
    const one = await sel();
    expect(one.msg % 16).toBe(1);
    await page.keyboard.press('Escape');
    await page.keyboard.press('.');
    expect((await sel()).t).toBeGreaterThanOrEqual(one.t);
    await page.fill('#search', 'psn:>x');
    expect(await page.textContent('.search .error')).toBe('“>x” is no comparison');
  });

  test('problems are listed, each with a jump', async () => {
    await load(page, kLost);
    await page.getByRole('tab', { name: 'Problems' }).click();
    await page.click('.problem-row[data-kind="packet dropped"]');
    expect(await page.textContent('#inspector h2')).toBe('fabric.drop');
    expect(await page.textContent('#inspector')).toContain('RC SEND');
    const seen = await page.evaluate(() => {
      const { a, view } = (window as any).rdmasim.state;
      const p = a.value.problems.find((e: any) => e.kind === 'packet dropped');
      return p.t >= view.value.from && p.t <= view.value.to;
    });
    expect(seen).toBe(true);
    await page.click('.problem-row[data-kind="retransmission"]');
    expect(await page.textContent('#inspector')).toContain('ACK timeout');
    await load(page, data('lost_wakeup_without_a_second_poll.jsonl.gz'));
    await page.click('.problem-row[data-kind="lost wake-up"]');
    expect(await page.textContent('#inspector h2')).toBe('hca.cq_doorbell');
  });
});

describe('two traces', () => {
  test('side by side, with differences per stage', async () => {
    await load(page, join(dir, 'native.jsonl'));
    // The same trace with a slower wire for every message.
    const slower = nativeText(kMessages).split('\n').map((l) => {
      if (!l.startsWith('{"k":"msg"')) return l;
      const b = JSON.parse(l) as Record<string, number[]>;
      b.wire = b.wire.map((x) => x + 1234);
      b.total = b.total.map((x) => x + 1234);
      return JSON.stringify(b);
    });
    await load(page, file('slow.jsonl', slower.join('\n')), 'b');
    expect(await page.locator('.timeline').count()).toBe(2);
    const row = await page.locator('#compare-table tr[data-stage="wire"] td').allTextContents();
    expect(row[2]).toBe('+1.234');
    expect(await page.locator('#compare-table tr[data-stage="receive"] td').nth(2).textContent()).toBe('0.000');
    expect(await page.locator('#compare-table tr[data-stage="latency, p50"] td').nth(2).textContent()).toBe('+1.234');
    await page.locator('.pair-row[aria-rowindex="3"]').click();
    expect(await page.textContent('#waterfall thead')).toContain('B − A, ps');
    const wire = await page.locator('#waterfall tbody tr', { hasText: 'wire' }).locator('td').nth(1).textContent();
    expect(psOf(wire)).toBe(1234);
    await page.getByRole('button', { name: 'close B' }).click();
    expect(await page.locator('.timeline').count()).toBe(1);
  });
});

describe('raw bytes', () => {
  test('a packet is decoded beside its bytes', async () => {
    const frame =
      '0200000000020200000000010800' + '45000030000040004011 26bb0a0000020a000001c00112b7001c00001140ffff0000010100000010 1f000001'.replace(/ /g, '') + 'ccfed1d2';
    const header = JSON.parse(nativeText(1).split('\n')[0]) as Record<string, unknown>;
    const text = [
      JSON.stringify(header), JSON.stringify({ k: 'point', id: 0, name: 'fabric.frame', cat: 'fabric', kind: 'packet', args: [] }),
      JSON.stringify({ k: 'packet', n: 1, t0: 5_000_000, t1: 5_000_000, lane: [28], len: [66], tx: [1], bytes: [frame] }),
    ].join('\n');
    await load(page, file('bytes.jsonl', text));
    const at = await page.evaluate(() => {
      const view = (window as any).rdmasim.instances.get('a');
      const strip = view.layout.strips.find((s: any) => s.kind === 'marks');
      const box = view.canvas.getBoundingClientRect();
      return { x: box.left + view.scale.x(5_000_000), y: box.top + 26 + strip.y + 5 };
    });
    await page.mouse.click(at.x, at.y);
    const panel = (await page.textContent('#inspector'))!;
    expect(panel).toContain('RC ACKNOWLEDGE, QP 257, PSN 16');
    expect(panel).toContain('correct');
    await page.locator('.fields tr', { hasText: 'MSN' }).hover();
    expect(await page.locator('.hex .lit').count()).toBe(3);
  });
});

describe('the page', () => {
  test('exports the view as SVG and PNG', async () => {
    await load(page, join(dir, 'native.jsonl'));
    await page.click('.message-row[data-message="5"]');
    const save = async (name: string) => {
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name, exact: true }).click()]);
      return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
    };
    const svg = await save('SVG');
    expect(svg.name).toBe('synthetic_wr5.svg');
    expect(svg.bytes.toString()).toMatch(/^<svg xmlns="http:\/\/www.w3.org\/2000\/svg" width="\d+" height="\d+"/);
    const valid = await page.evaluate((t) => new DOMParser().parseFromString(t, 'image/svg+xml').querySelector('parsererror') === null, svg.bytes.toString());
    expect(valid).toBe(true);
    const png = await save('PNG');
    expect(png.name).toBe('synthetic_wr5.png');
    expect([...png.bytes.subarray(0, 4)]).toEqual([0x89, 0x50, 0x4e, 0x47]);
    expect(png.bytes.length).toBeGreaterThan(5000);
  });

  test('links lead back to the view', async () => {
    await load(page, join(dir, 'native.jsonl'));
    await page.click('.message-row[data-message="5"]');
    await page.getByRole('tab', { name: 'Latency' }).click();
    await expect.poll(() => page.evaluate(() => location.hash)).toMatch(/^#t=\d+ps&w=\d+ps&msg=5&tab=latency$/);
    const hash = await page.evaluate(() => location.hash);
    await page.evaluate(() => (location.hash = '#msg=9'));
    await expect.poll(() => page.getAttribute('#message-panel', 'data-message')).toBe('9');
    const traced = file('linked.html', embed(nativeText(kMessages)));
    const again = await openViewer(browser, { path: traced, hash });
    await again.page.waitForSelector('#message-panel[data-message="5"]');
    expect(await again.page.getAttribute('[role=tab][aria-selected=true] >> nth=1', 'aria-selected')).toBe('true');
    expect(await again.page.evaluate(() => (window as any).rdmasim.state.tab.value)).toBe('latency');
    expect(again.errors).toEqual([]);
    await again.close();
  });

  test('the template has one place for the trace, and opens what is put there', async () => {
    const template = readFileSync(kPage, 'utf8');
    expect(template.split('<!--rdmasim:trace-->')).toHaveLength(2);
    expect(template).not.toMatch(/(src|href)="(?!data:)/);
    const two = file('two.html', embed(nativeText(kMessages), chromeText(kMessages)));
    const other = await openViewer(browser, { path: two });
    await other.page.waitForFunction(() => (window as any).rdmasim.state.b.value !== null);
    expect(await other.page.textContent('.toolbar')).toContain('run.jsonl');
    expect(await other.page.locator('.timeline').count()).toBe(2);
    expect(other.errors).toEqual([]);
    await other.close();
  });

  test('light and dark, 1280 pixels, names for everything that can be pressed', async () => {
    const dark = await openViewer(browser, { dark: true });
    await load(dark.page, kLost);
    const background = () => dark.page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const first = await background();
    expect(first).toBe('rgb(20, 24, 31)');
    await dark.page.getByRole('button', { name: /Colours/ }).click();
    await dark.page.getByRole('button', { name: /Colours/ }).click();
    await expect.poll(background).toBe('rgb(255, 255, 255)');
    for (const tab of ['Problems', 'Latency', 'Compare', 'Lanes', 'File', 'Messages']) {
      await dark.page.getByRole('tab', { name: tab }).click();
      expect(await dark.page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(1280);
      const nameless = await dark.page.evaluate(() =>
        [...document.querySelectorAll('button, input, canvas, [role=grid], [role=tab], [role=separator], [role=dialog]')]
          .filter((e) => !(e.getAttribute('aria-label') || e.textContent?.trim() || e.closest('label')?.textContent?.trim() || e.getAttribute('title')))
          .map((e) => e.outerHTML.slice(0, 100)));
      expect(nameless).toEqual([]);
    }
    await dark.page.keyboard.press('?');
    expect(await dark.page.getByRole('dialog', { name: 'Keys and mouse' }).isVisible()).toBe(true);
    await dark.page.keyboard.press('Escape');
    expect(await dark.page.getByRole('dialog').count()).toBe(0);
    expect(dark.errors).toEqual([]);
    await dark.close();
  });

  test('the keyboard alone reaches the timeline, the tables and the panel, in the order of the page', async () => {
    await load(page, join(dir, 'native.jsonl'));
    const stops: string[] = [];
    await page.evaluate(() => (document.activeElement as HTMLElement)?.blur());
    for (let i = 0; i < 40; ++i) {
      await page.keyboard.press('Tab');
      stops.push(await page.evaluate(() => {
        const e = document.activeElement!;
        return e.id || e.getAttribute('role') || e.getAttribute('aria-label') || e.tagName;
      }));
    }
    const order = ['open-a', 'search', 'application', 'tab', 'separator', 'grid'].map((s) => stops.indexOf(s));
    expect(order.every((at) => at >= 0)).toBe(true);
    expect([...order].sort((x, y) => x - y)).toEqual(order);
  });
});

/** The page with traces in it, as `rdmasim view` makes it. */
function embed(first: string, second?: string): string {
  const script = (id: string, name: string, text: string) =>
    `<script type="application/octet-stream;base64" id="${id}" data-name="${name}">${gzipSync(text).toString('base64')}</script>`;
  const scripts = script('rdmasim-trace', 'run.jsonl', first) + (second ? script('rdmasim-trace-b', 'other.json', second) : '');
  return readFileSync(kPage, 'utf8').replace('<!--rdmasim:trace-->', () => scripts);
}
