// SPDX-License-Identifier: Apache-2.0
// What the page shows of a trace: messages and their waterfalls, search, problems, two traces, raw bytes.
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { load } from '../harness.mjs';
import { nativeText } from '../synthetic.mjs';
import { data, kLost, kMessages, useViewer } from './setup';

const t = useViewer();
const psOf = (text: string | null) => Number((text ?? '').replace(/[^\d−-]/g, '').replace('−', '-'));

describe('messages', () => {
  test('click a WR: its life-line, and a waterfall that sums to its latency', async () => {
    await load(t.page, join(t.dir, 'native.jsonl'));
    await t.page.click('.message-row[data-message="5"]');
    expect(await t.page.textContent('#message-panel h2')).toContain('WR 5: SEND 4096 bytes');
    const cells = await t.page
      .locator('#waterfall tbody td[data-ps]')
      .evaluateAll((all) => all.map((c) => Number((c as HTMLElement).dataset.ps)));
    const sum = Number(await t.page.getAttribute('#stage-sum', 'data-ps'));
    const total = await t.page.evaluate(() => {
      const t = (window as any).rdmasim.state.a.value.trace;
      return t.messages.total[t.messageRow[5]];
    });
    expect(cells.reduce((x, y) => x + y, 0)).toBe(total);
    expect(sum).toBe(total);
    expect(psOf(await t.page.textContent('#stage-sum'))).toBe(total);
    expect(await t.page.textContent('#waterfall tfoot')).toContain('= latency');
    expect(await t.page.textContent('#message-panel')).toContain('host1 → host0');
    const arrows = await t.page.evaluate(() => (window as any).rdmasim.state.line.value.arrows.length);
    expect(arrows).toBe(28);
    expect(await t.page.locator('#steps tbody tr').count()).toBeGreaterThan(15);
    // n and p step through the table.
    await t.page.keyboard.press('n');
    expect(await t.page.getAttribute('#message-panel', 'data-message')).toBe('6');
    await t.page.keyboard.press('p');
    await t.page.keyboard.press('p');
    expect(await t.page.getAttribute('#message-panel', 'data-message')).toBe('4');
    const lanes = await t.page.evaluate(() => (window as any).rdmasim.state.groups.value.flatMap((g: any) => g.lanes).length);
    await t.page.keyboard.press('m');
    expect(
      await t.page.evaluate(() => (window as any).rdmasim.state.groups.value.flatMap((g: any) => g.lanes).length),
    ).toBeLessThan(lanes);
    await t.page.keyboard.press('Escape');
    expect(await t.page.locator('#message-panel').count()).toBe(0);
  });

  test('click a span in the picture', async () => {
    await load(t.page, join(t.dir, 'native.jsonl'));
    const at = await t.page.evaluate(() => {
      const { instances, setView, state } = (window as any).rdmasim;
      const t = state.a.value.trace;
      const i = t.byId[29 * 21 + 1];
      setView({ from: t.spans.start[i] - 2e5, to: t.spans.start[i] + 2e6 });
      const view = instances.get('a');
      view.scrollY = 0;
      view.paint();
      const strip = view.layout.strips.find((s: any) => s.kind === 'spans' && s.lane === t.spans.lane[i]);
      const box = view.canvas.getBoundingClientRect();
      return {
        x: box.left + view.scale.x(t.spans.start[i] + t.spans.dur[i] / 2),
        y: box.top + 26 + strip.y + strip.h / 2 - view.scrollY,
        msg: t.spans.msg[i],
      };
    });
    await t.page.mouse.move(at.x, at.y);
    expect(await t.page.textContent('.tip')).toContain(`cpu.post, message ${at.msg}`);
    await t.page.mouse.click(at.x, at.y);
    expect(await t.page.getAttribute('#message-panel', 'data-message')).toBe(String(at.msg));
    await t.page.getByRole('tab', { name: 'Record' }).click();
    expect(await t.page.textContent('#inspector')).toContain('cpu.post');
    expect(await t.page.textContent('#inspector')).toMatch(/qpn\d+/);
    await t.page.locator('#inspector dd button', { hasText: 'wc_flush' }).click();
    expect(await t.page.textContent('#inspector h2')).toBe('cpu.wc_flush');
  });

  test('sorting, and the keyboard in the table', async () => {
    await load(t.page, join(t.dir, 'native.jsonl'));
    await t.page.getByRole('columnheader', { name: 'latency, ns' }).click();
    await t.page.getByRole('columnheader', { name: 'latency, ns' }).click();
    const first = await t.page.locator('.message-row[data-message]').first().locator('[role=gridcell]').nth(4).textContent();
    const most = await t.page.evaluate(() => Math.max(...(window as any).rdmasim.state.a.value.trace.messages.total));
    expect(psOf(first)).toBe(most);
    await t.page.focus('.list.messages');
    await t.page.keyboard.press('ArrowDown');
    await t.page.keyboard.press('ArrowDown');
    const second = await t.page.locator('.message-row[data-message]').nth(1).getAttribute('data-message');
    expect(await t.page.getAttribute('#message-panel', 'data-message')).toBe(second);
    expect(await t.page.getAttribute(`.message-row[data-message="${second}"]`, 'aria-selected')).toBe('true');
  });

  test('Chrome JSON says why there is no waterfall', async () => {
    await load(t.page, join(t.dir, 'chrome.json'));
    await t.page.click('.message-row[data-message="5"]');
    expect(await t.page.textContent('#message-panel')).toContain('the native trace does');
    expect(await t.page.locator('#steps tbody tr').count()).toBeGreaterThan(15);
  });

  test('latency: dragging over the histogram filters the table', async () => {
    await load(t.page, join(t.dir, 'native.jsonl'));
    await t.page.getByRole('tab', { name: 'Latency' }).click();
    const over = t.page.locator('.chart .u-over').first();
    await over.waitFor();
    const box = (await over.boundingBox())!;
    await t.page.mouse.move(box.x + box.width * 0.6, box.y + 20);
    await t.page.mouse.down();
    await t.page.mouse.move(box.x + box.width - 2, box.y + 30, { steps: 5 });
    await t.page.mouse.up();
    await t.page.getByRole('tab', { name: 'Messages' }).click();
    const text = (await t.page.textContent('#message-count'))!;
    expect(Number(text.split(' ')[0])).toBeGreaterThan(0);
    expect(Number(text.split(' ')[0])).toBeLessThan(200);
    await t.page.locator('.bar button', { hasText: 'latency' }).click();
    expect(await t.page.textContent('#message-count')).toBe('200 of 200 messages');
  });
});

describe('stages of many messages', () => {
  test('means add up to the mean latency; a stage leads to its distribution, which filters', async () => {
    await load(t.page, join(t.dir, 'native.jsonl'));
    await t.page.click('.message-row[data-message="5"]');
    await t.page.getByRole('tab', { name: 'Stages' }).click();
    const means = await t.page
      .locator('#stages-table tbody tr')
      .evaluateAll((rows) =>
        rows.map((r) => [r.getAttribute('data-stage'), ...[...r.querySelectorAll('td.num')].map((c) => c.textContent)]),
      );
    const mean = (row: (string | null)[]) => psOf(row[1]);
    const total = means.pop()!;
    expect(Math.abs(means.reduce((sum, r) => sum + mean(r), 0) - mean(total))).toBeLessThan(means.length);
    const wire = means.find((r) => r[0] === 'wire')!;
    // p50, p99, max and the selected message: half of them wait 12 ns for the wire.
    expect(wire.slice(3).map(psOf)).toEqual([480_280, 492_280, 492_280, 480_280]);
    await t.page.locator('#stages-table button', { hasText: 'payload_dma' }).click();
    expect(await t.page.locator('#quantity').inputValue()).toBe('payload_dma');
    expect(await t.page.textContent('.chart .u-title')).toBe('messages per bin over payload_dma, ns');
    await t.page.selectOption('#quantity', 'pcie_down');
    await expect.poll(() => t.page.textContent('.chart .u-title')).toContain('pcie_down');
    const over = t.page.locator('.chart .u-over').first();
    const box = (await over.boundingBox())!;
    await t.page.mouse.move(box.x + box.width * 0.8, box.y + 20);
    await expect
      .poll(() => t.page.locator('.chart .under').first().textContent())
      .toMatch(/^\d+ messages of [\d .]+ … [\d .]+ ns$/);
    await t.page.mouse.down();
    await t.page.mouse.move(box.x + box.width - 1, box.y + 30, { steps: 5 });
    await t.page.mouse.up();
    const shown = await t.page.evaluate(() => {
      const { a, messageRows, latencyRange } = (window as any).rdmasim.state;
      const column = a.value.trace.messages.stages[a.value.trace.header.stages.indexOf('pcie_down')];
      const { from, to } = latencyRange.value;
      const want = [...column].filter((x) => x >= from && x <= to).length;
      return { stage: latencyRange.value.stage, got: messageRows.value.length, want };
    });
    expect(shown.stage).toBe('pcie_down');
    expect(shown.got).toBe(shown.want);
    expect(shown.got).toBeGreaterThan(0);
    expect(shown.got).toBeLessThan(200);
  });
});

describe('lanes', () => {
  test('hosts and components fold, by mouse and by buttons; a jump opens them', async () => {
    await load(t.page, join(t.dir, 'native.jsonl'));
    const strips = () =>
      t.page.evaluate(() => (window as any).rdmasim.instances.get('a').layout.strips.map((s: any) => s.key ?? s.label));
    const whole = await strips();
    await t.page.mouse.click(20, 90);
    expect(await strips()).toHaveLength(whole.length - 2);
    await t.page.getByRole('tab', { name: 'Lanes' }).click();
    await t.page.getByRole('button', { name: 'all of host1' }).click();
    expect(await strips()).not.toContain('1/cpu');
    const seen = await t.page.evaluate(() => {
      const { state, instances } = (window as any).rdmasim;
      const t = state.a.value.trace;
      const view = instances.get('a');
      const i = [...t.spans.lane].findIndex((l) => t.lanes[l].path === 'host1.hca.rx');
      return { row: view.layout.rowY[[...t.rows.lane].indexOf(t.spans.lane[i])] };
    });
    expect(seen.row).toBeGreaterThan(0);
    await t.page.fill('#search', 'lane:host1.hca.rx');
    await t.page.keyboard.press('Enter');
    await expect.poll(strips).toContain('1/hca');
    await t.page.fill('#search', '');
    await t.page.keyboard.press('Escape');
    await t.page.keyboard.press('c');
    const compact = await strips();
    expect(compact).toContain('hca.rx');
    expect(compact).not.toContain('1/hca');
  });
});

describe('search and problems', () => {
  test('search filters the table and steps through the picture', async () => {
    await load(t.page, join(t.dir, 'native.jsonl'));
    await t.page.keyboard.press('/');
    await t.page.keyboard.type('qpn:257 opcode:acknowledge');
    expect(await t.page.textContent('#found')).toContain('39 spans');
    expect(await t.page.textContent('#message-count')).toBe('13 of 200 messages');
    await t.page.fill('#search', 'opcode:rdma_read');
    expect(await t.page.textContent('.bottom')).toContain('No message matches the search.');
    await t.page.fill('#search', 'qpn:257');
    expect(await t.page.textContent('#message-count')).toBe('13 of 200 messages');
    await t.page.keyboard.press('Enter');
    const sel = () =>
      t.page.evaluate(() => {
        const { a, selected } = (window as any).rdmasim.state;
        const i = selected.value.index;
        return { t: a.value.trace.spans.start[i], msg: a.value.trace.spans.msg[i] };
      });
    const one = await sel();
    expect(one.msg % 16).toBe(1);
    await t.page.keyboard.press('Escape');
    await t.page.keyboard.press('.');
    expect((await sel()).t).toBeGreaterThanOrEqual(one.t);
    await t.page.fill('#search', 'psn:>x');
    expect(await t.page.textContent('.search .error')).toBe('“>x” is no comparison');
  });

  test('problems are listed, each with a jump', async () => {
    await load(t.page, kLost);
    await t.page.getByRole('tab', { name: 'Problems' }).click();
    await t.page.click('.problem-row[data-kind="packet dropped"]');
    expect(await t.page.textContent('#inspector h2')).toBe('fabric.drop');
    expect(await t.page.textContent('#inspector')).toContain('RC SEND');
    const seen = await t.page.evaluate(() => {
      const { a, view } = (window as any).rdmasim.state;
      const p = a.value.problems.find((e: any) => e.kind === 'packet dropped');
      return p.t >= view.value.from && p.t <= view.value.to;
    });
    expect(seen).toBe(true);
    await t.page.click('.problem-row[data-kind="retransmission"]');
    expect(await t.page.textContent('#inspector')).toContain('ACK timeout');
    await load(t.page, data('lost_wakeup_without_a_second_poll.jsonl.gz'));
    await t.page.click('.problem-row[data-kind="lost wake-up"]');
    expect(await t.page.textContent('#inspector h2')).toBe('hca.cq_doorbell');
    expect(await t.page.textContent('#problem')).toContain('no event came after that');
  });
});

describe('two traces', () => {
  test('side by side, with differences per stage', async () => {
    await load(t.page, join(t.dir, 'native.jsonl'));
    // The same trace with a slower wire for every message.
    const slower = nativeText(kMessages)
      .split('\n')
      .map((l) => {
        if (!l.startsWith('{"k":"msg"')) return l;
        const b = JSON.parse(l) as Record<string, number[]>;
        b.wire = b.wire.map((x) => x + 1234);
        b.total = b.total.map((x) => x + 1234);
        return JSON.stringify(b);
      });
    await load(t.page, t.file('slow.jsonl', slower.join('\n')), 'b');
    expect(await t.page.locator('.timeline').count()).toBe(2);
    const row = await t.page.locator('#compare-table tr[data-stage="wire"] td').allTextContents();
    expect(row[2]).toBe('+1.234');
    expect(await t.page.locator('#compare-table tr[data-stage="receive"] td').nth(2).textContent()).toBe('0.000');
    expect(await t.page.locator('#compare-table tr[data-stage="latency, p50"] td').nth(2).textContent()).toBe('+1.234');
    await t.page.locator('.pair-row[aria-rowindex="3"]').click();
    expect(await t.page.textContent('#waterfall thead')).toContain('B − A, ps');
    const wire = await t.page.locator('#waterfall tbody tr', { hasText: 'wire' }).locator('td').nth(1).textContent();
    expect(psOf(wire)).toBe(1234);
    // A picture of both, one above the other.
    const svg = await t.page.evaluate(() => {
      const { svgText, instances } = (window as any).rdmasim;
      const root = new DOMParser().parseFromString(svgText(), 'image/svg+xml').documentElement;
      const ids = [...root.querySelectorAll('clipPath')].map((c) => c.id);
      return {
        tops: [...root.children].map((c) => Number(c.getAttribute('y'))),
        height: Number(root.getAttribute('height')),
        first: instances.get('a').height,
        both: instances.get('a').height + instances.get('b').height,
        unique: new Set(ids).size === ids.length && ids.length > 2,
      };
    });
    expect(svg).toEqual({ tops: [0, svg.first], height: svg.both, first: svg.first, both: svg.both, unique: true });
    await t.page.getByRole('button', { name: 'close B' }).click();
    expect(await t.page.locator('.timeline').count()).toBe(1);
  });
});

describe('records', () => {
  test('a packet leads to its span on the wire; names of lanes to their paths', async () => {
    await load(t.page, join(t.dir, 'native.jsonl'));
    await t.page.evaluate(() => {
      const { state } = (window as any).rdmasim;
      state.selected.value = { record: 'packet', index: 1, side: 'a' };
      state.side.value = 'record';
    });
    await t.page.locator('#inspector button', { hasText: /^wire #\d+ on fabric/ }).click();
    expect(await t.page.textContent('#inspector h2')).toBe('fabric.wire');
    expect(await t.page.textContent('#inspector')).toContain('RC SEND_ONLY');
    await t.page.mouse.move(60, 108);
    expect(await t.page.textContent('.timeline .tip')).toMatch(/^host0\.\S+\nspans/);
  });
});

describe('packets', () => {
  test('the ladder marks what was lost and sent again, and leads to the frame', async () => {
    await load(t.page, kLost);
    await t.page.getByRole('tab', { name: 'Packets' }).click();
    const rows = t.page.locator('.rung-row[data-psn]');
    expect(await rows.count()).toBe(3);
    await t.page.fill('#search', 'point:fabric.drop');
    expect(await t.page.textContent('#found')).toMatch(/^0 spans, 1 instant/);
    await t.page.keyboard.press('Enter');
    expect(await t.page.textContent('#inspector h2')).toBe('fabric.drop');
    expect(await t.page.textContent('.bottom .hint')).toBe('1 sent again, 1 lost or changed');
    expect(await rows.nth(0).getAttribute('class')).toContain('bad');
    expect(await rows.nth(1).textContent()).toContain('sent again');
    await rows.nth(1).click();
    expect(await rows.nth(1).getAttribute('aria-selected')).toBe('true');
    expect(await t.page.textContent('#inspector h2')).toBe('Packet sent');
    await t.page.keyboard.press('Tab');
    await t.page.focus('.list.rungs');
    await t.page.keyboard.press('ArrowDown');
    expect(await t.page.textContent('#inspector')).toContain('host1_to_host0');
  });
});

describe('raw bytes', () => {
  test('a packet is decoded beside its bytes', async () => {
    const frame =
      '0200000000020200000000010800' +
      '45000030000040004011 26bb0a0000020a000001c00112b7001c00001140ffff0000010100000010 1f000001'.replace(/ /g, '') +
      'ccfed1d2';
    const header = JSON.parse(nativeText(1).split('\n')[0]) as Record<string, unknown>;
    const text = [
      JSON.stringify(header),
      JSON.stringify({ k: 'point', id: 0, name: 'fabric.frame', cat: 'fabric', kind: 'packet', args: [] }),
      JSON.stringify({ k: 'packet', n: 1, t0: 5_000_000, t1: 5_000_000, lane: [28], len: [66], tx: [1], bytes: [frame] }),
    ].join('\n');
    await load(t.page, t.file('bytes.jsonl', text));
    const at = await t.page.evaluate(() => {
      const view = (window as any).rdmasim.instances.get('a');
      const strip = view.layout.strips.find((s: any) => s.kind === 'marks');
      const box = view.canvas.getBoundingClientRect();
      return { x: box.left + view.scale.x(5_000_000), y: box.top + 26 + strip.y + 5 };
    });
    await t.page.mouse.click(at.x, at.y);
    const panel = (await t.page.textContent('#inspector'))!;
    expect(panel).toContain('RC ACKNOWLEDGE, QP 257, PSN 16');
    expect(panel).toContain('correct');
    await t.page.locator('.fields tr', { hasText: 'MSN' }).hover();
    expect(await t.page.locator('.hex .lit').count()).toBe(3);
    // The other way round: a byte leads to its field, and a click keeps it.
    await t.page.click('.hex [data-at="51"]');
    await t.page.mouse.move(5, 5);
    expect(await t.page.locator('.fields tr.lit td').first().textContent()).toBe('PSN');
    expect(await t.page.locator('.hex .lit').count()).toBe(3);
  });
});
