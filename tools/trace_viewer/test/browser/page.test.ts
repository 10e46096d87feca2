// SPDX-License-Identifier: Apache-2.0
// The built page in Chromium, opened from disk: loading, bad files, moving, exports, links, embedded traces, themes, keyboard.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import axe from 'axe-core';
import { beforeEach, describe, expect, test } from 'vitest';
import { kPage, load, openViewer } from '../harness.mjs';
import { chromeText, nativeText } from '../synthetic.mjs';
import { kLost, kMessages, useViewer } from './setup';

const t = useViewer();

describe('loading', () => {
  test('says what to do before there is a trace', async () => {
    expect(await t.page.textContent('main')).toContain('rdmasim run SCENARIO --trace json --out DIR');
  });
  test('native, compressed and Chrome JSON', async () => {
    for (const [name, text] of [
      ['native.jsonl', ''],
      ['x.jsonl.gz', nativeText(kMessages)],
      ['chrome.json', ''],
    ] as const) {
      const path = text ? t.file(name, gzipSync(text)) : join(t.dir, name);
      await load(t.page, path);
      expect(await t.page.textContent('#message-count')).toBe('200 of 200 messages');
      expect(await t.page.locator('#failure, #diagnostics').count()).toBe(0);
    }
  });
  test('the same file twice, and another one after it', async () => {
    await load(t.page, join(t.dir, 'native.jsonl'));
    await load(t.page, join(t.dir, 'native.jsonl'));
    await load(t.page, kLost);
    expect(await t.page.locator('.message-row[data-message]').count()).toBeLessThan(10);
  });
  test('dropped files', async () => {
    const text = nativeText(3);
    await t.page.evaluate((t) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([t], 'dropped.jsonl'));
      document
        .querySelector('.page')!
        .dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));
    }, text);
    await t.page.waitForSelector('#message-count');
    expect(await t.page.textContent('#message-count')).toBe('3 of 3 messages');
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
    await load(t.page, t.file(name, text));
    expect(await t.page.textContent('#failure')).toContain(reason);
    expect(await t.page.locator('main.welcome').count()).toBe(1);
  });
  test('a refused file leaves the open trace alone', async () => {
    await load(t.page, join(t.dir, 'native.jsonl'));
    await load(t.page, t.file('bad.txt', 'bad'));
    expect(await t.page.textContent('#failure')).toContain('is no trace');
    expect(await t.page.textContent('#message-count')).toBe('200 of 200 messages');
    await t.page.click('#failure button');
    expect(await t.page.locator('#failure').count()).toBe(0);
  });
  test('a file cut short is shown up to the cut, and says so', async () => {
    const text = nativeText(4000);
    const cut = text.lastIndexOf('{"k":"span"') + 1000;
    await load(t.page, t.file('cut.jsonl', text.slice(0, cut)));
    expect(await t.page.textContent('#diagnostics')).toContain(`cut short in line`);
    expect(await t.page.evaluate(() => (window as any).rdmasim.state.a.value.trace.spans.n)).toBeGreaterThan(50_000);
    await t.page.click('#diagnostics button');
    expect(await t.page.textContent('.diagnostics')).toContain(`at byte ${cut}`);
  });
  test('broken lines are listed', async () => {
    const rows = nativeText(50).split('\n');
    rows.splice(5, 0, '{"k":"point","id":');
    await load(t.page, t.file('broken.jsonl', rows.join('\n')));
    expect(await t.page.textContent('#diagnostics')).toMatch(/broken\.jsonl: line 6 \(byte \d+\): not valid JSON/);
    expect(await t.page.textContent('#message-count')).toBe('50 of 50 messages');
  });
  test('a trace without records', async () => {
    const head = nativeText(1).split('\n')[0];
    await load(
      t.page,
      t.file(
        'none.jsonl',
        `${head}\n{"k":"end","spans":0,"instants":0,"counters":0,"states":0,"packets":0,"messages":0,"t_end":0}\n`,
      ),
    );
    expect(await t.page.textContent('.bottom')).toContain('The trace holds no messages.');
    await t.page.keyboard.press('n');
    await t.page.keyboard.press('w');
    for (const tab of ['Problems', 'Latency', 'Compare', 'Lanes', 'File']) await t.page.getByRole('tab', { name: tab }).click();
  });
});

describe('moving', () => {
  beforeEach(async () => {
    await load(t.page, join(t.dir, 'native.jsonl'));
  });
  test('keys, wheel and drag', async () => {
    const whole = await t.windowLength();
    await t.page.keyboard.press('w');
    expect(await t.windowLength()).toBeCloseTo(whole * 0.7, -3);
    await t.page.keyboard.press('-');
    await t.page.keyboard.press('0');
    expect(await t.windowLength()).toBe(whole);
    await t.page.mouse.move(600, 200);
    await t.page.mouse.wheel(0, -300);
    await expect.poll(t.windowLength).toBeLessThan(whole * 0.7);
    const from = () => t.page.evaluate(() => (window as any).rdmasim.state.view.value.from);
    const before = await from();
    await t.page.mouse.down();
    await t.page.mouse.move(500, 200, { steps: 4 });
    await t.page.mouse.up();
    expect(await from()).toBeGreaterThan(before);
    const moved = await from();
    await t.page.keyboard.press('ArrowLeft');
    expect(await from()).toBeLessThan(moved);
    expect(await t.page.textContent('#window')).toMatch(/[µm]s$/);
  });
  test('two fingers', async () => {
    const touch = await openViewer(t.browser, { touch: true });
    await load(touch.page, join(t.dir, 'native.jsonl'));
    const length = () =>
      touch.page.evaluate(() => (window as any).rdmasim.state.view.value.to - (window as any).rdmasim.state.view.value.from);
    const before = await length();
    const client = await touch.page.context().newCDPSession(touch.page);
    const send = (type: string, gap: number) =>
      client.send('Input.dispatchTouchEvent', {
        type: type as 'touchStart',
        touchPoints:
          gap < 0
            ? []
            : [
                { x: 540 - gap, y: 250, id: 1 },
                { x: 540 + gap, y: 250, id: 2 },
              ],
      });
    await send('touchStart', 40);
    for (const gap of [60, 90, 130]) await send('touchMove', gap);
    await send('touchEnd', -1);
    expect(await length()).toBeLessThan(before * 0.5);
    expect(touch.errors).toEqual([]);
    await touch.close();
  });
  test('measuring and zooming to it', async () => {
    await t.page.keyboard.down('Shift');
    await t.page.mouse.move(400, 200);
    await t.page.mouse.down();
    await t.page.mouse.move(500, 200, { steps: 3 });
    expect(await t.page.textContent('.tip')).toMatch(/^Δ [\d.]+ ns/);
    await t.page.mouse.up();
    await t.page.keyboard.up('Shift');
    // What happens in it.
    expect(await t.page.textContent('#range-panel')).toMatch(/messages posted\d+/);
    const wire = await t.page.locator('#range-work tr[data-point="fabric.wire"]').first().locator('td').first().textContent();
    expect(Number(wire)).toBeGreaterThan(0);
    await t.page.getByRole('button', { name: 'only these messages' }).click();
    expect(await t.page.textContent('#message-count')).toMatch(/^\d+ of 200 messages/);
    expect(await t.page.textContent('#message-count')).not.toContain('200 of 200');
    await t.page.fill('#search', '');
    await t.page.keyboard.press('Escape');
    const before = await t.windowLength();
    await t.page.keyboard.press('z');
    expect(await t.windowLength()).toBeLessThan(before * 0.2);
  });
});

describe('accessibility', () => {
  test.each(['light', 'dark'])('axe finds nothing to complain about, %s', async (theme) => {
    const { page, errors, close } = await openViewer(t.browser, { dark: theme === 'dark' });
    const complaints: string[] = [];
    await page.addScriptTag({ content: axe.source });
    const look = async (where: string) => {
      const found = await page.evaluate(() => (window as any).axe.run(document, { resultTypes: ['violations'] }));
      for (const v of found.violations) complaints.push(`${where}: ${v.id} at ${v.nodes[0].target.join(' ')}`);
    };
    await look('before a trace');
    await load(page, kLost);
    await page.click('.message-row[data-message="1"]');
    for (const tab of ['Problems', 'Latency', 'Stages', 'Packets', 'Compare', 'Lanes', 'File', 'Messages']) {
      await page.getByRole('tab', { name: tab }).click();
      await look(tab);
    }
    await page.evaluate(() => {
      const { state } = (window as any).rdmasim;
      state.selected.value = { record: 'packet', index: 0, side: 'a' };
      state.side.value = 'record';
      state.helpOpen.value = true;
    });
    await look('a record, and the help');
    expect(complaints).toEqual([]);
    expect(errors).toEqual([]);
    await close();
  });
  test('tabs by arrows, spans by brackets, causes by angles', async () => {
    await load(t.page, join(t.dir, 'native.jsonl'));
    await t.page.getByRole('tab', { name: 'Messages' }).focus();
    await t.page.keyboard.press('ArrowRight');
    await t.page.keyboard.press('ArrowRight');
    expect(await t.page.evaluate(() => document.activeElement?.textContent)).toBe('Latency');
    await t.page.keyboard.press('End');
    expect(await t.page.evaluate(() => (window as any).rdmasim.state.tab.value)).toBe('file');
    await t.page.keyboard.press('n');
    await t.page.keyboard.press(']');
    const point = () =>
      t.page.evaluate(() => {
        const { a, selected } = (window as any).rdmasim.state;
        const t = a.value.trace;
        return t.points[t.spans.point[selected.value.index]].name;
      });
    expect(await point()).toBe('cpu.post');
    await t.page.keyboard.press('>');
    expect(await point()).toBe('cpu.wc_flush');
    await t.page.keyboard.press('>');
    await t.page.keyboard.press('<');
    expect(await point()).toBe('cpu.wc_flush');
  });
});

describe('the page', () => {
  test('exports the view as SVG and PNG', async () => {
    await load(t.page, join(t.dir, 'native.jsonl'));
    await t.page.click('.message-row[data-message="5"]');
    const save = async (name: string) => {
      const [download] = await Promise.all([
        t.page.waitForEvent('download'),
        t.page.getByRole('button', { name, exact: true }).click(),
      ]);
      return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
    };
    const svg = await save('SVG');
    expect(svg.name).toBe('synthetic_wr5.svg');
    expect(svg.bytes.toString()).toMatch(/^<svg xmlns="http:\/\/www.w3.org\/2000\/svg" width="\d+" height="\d+"/);
    const valid = await t.page.evaluate(
      (t) => new DOMParser().parseFromString(t, 'image/svg+xml').querySelector('parsererror') === null,
      svg.bytes.toString(),
    );
    expect(valid).toBe(true);
    const png = await save('PNG');
    expect(png.name).toBe('synthetic_wr5.png');
    expect([...png.bytes.subarray(0, 4)]).toEqual([0x89, 0x50, 0x4e, 0x47]);
    expect(png.bytes.length).toBeGreaterThan(5000);
  });

  test('links lead back to the view', async () => {
    await load(t.page, join(t.dir, 'native.jsonl'));
    await t.page.click('.message-row[data-message="5"]');
    await t.page.getByRole('tab', { name: 'Latency' }).click();
    await expect.poll(() => t.page.evaluate(() => location.hash)).toMatch(/^#t=\d+ps&w=\d+ps&msg=5&tab=latency$/);
    const hash = await t.page.evaluate(() => location.hash);
    await t.page.evaluate(() => (location.hash = '#msg=9'));
    await expect.poll(() => t.page.getAttribute('#message-panel', 'data-message')).toBe('9');
    const traced = t.file('linked.html', embed(nativeText(kMessages)));
    const again = await openViewer(t.browser, { path: traced, hash });
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
    const two = t.file('two.html', embed(nativeText(kMessages), chromeText(kMessages)));
    const other = await openViewer(t.browser, { path: two });
    await other.page.waitForFunction(() => (window as any).rdmasim.state.b.value !== null);
    expect(await other.page.textContent('.toolbar')).toContain('run.jsonl');
    expect(await other.page.locator('.timeline').count()).toBe(2);
    expect(other.errors).toEqual([]);
    await other.close();
  });

  test('light and dark, 1280 pixels, names for everything that can be pressed', async () => {
    const dark = await openViewer(t.browser, { dark: true });
    await load(dark.page, kLost);
    const background = () => dark.page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const first = await background();
    expect(first).toBe('rgb(20, 24, 31)');
    await dark.page.getByRole('button', { name: /Colours/ }).click();
    await dark.page.getByRole('button', { name: /Colours/ }).click();
    await expect.poll(background).toBe('rgb(255, 255, 255)');
    for (const tab of ['Problems', 'Latency', 'Compare', 'Lanes', 'File', 'Messages']) {
      await dark.page.getByRole('tab', { name: tab }).click();
      if (tab === 'Latency') await dark.page.locator('.chart canvas').nth(1).waitFor();
      expect(await dark.page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(1280);
      const nameless = await dark.page.evaluate(() =>
        [...document.querySelectorAll('button, input, canvas, [role=grid], [role=tab], [role=separator], [role=dialog]')]
          .filter(
            (e) =>
              !(
                e.getAttribute('aria-label') ||
                e.textContent?.trim() ||
                e.closest('label')?.textContent?.trim() ||
                // What a picture with a name is made of needs none.
                e.closest('[role=img]') ||
                e.getAttribute('title')
              ),
          )
          .map((e) => e.outerHTML.slice(0, 100)),
      );
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
    await load(t.page, join(t.dir, 'native.jsonl'));
    const stops: string[] = [];
    await t.page.evaluate(() => (document.activeElement as HTMLElement)?.blur());
    for (let i = 0; i < 40; ++i) {
      await t.page.keyboard.press('Tab');
      stops.push(
        await t.page.evaluate(() => {
          const e = document.activeElement!;
          return e.id || e.getAttribute('role') || e.getAttribute('aria-label') || e.tagName;
        }),
      );
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
