// SPDX-License-Identifier: Apache-2.0
// Runs of the simulator itself, when RDMASIM names its program: the waterfall of the median message says the same as the result of the
// run, picosecond by picosecond; every message's stages add up; and problems are listed where, and only where, the run has some.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { launch, load, openViewer } from '../harness.mjs';

const program = process.env.RDMASIM;
const root = fileURLToPath(new URL('../../../../', import.meta.url));

interface Result {
  workloads: {
    messages: number;
    median_message: { id: number; latency_ps: number };
    breakdown_ns: { stage: string; p50_ps: number }[];
  }[];
}

describe.skipIf(!program)('runs of the simulator', () => {
  let browser: Browser;
  let dir: string;
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'trace_viewer_run_'));
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
    if (dir) rmSync(dir, { recursive: true });
  });
  const run = (scenario: string, ...more: string[]) =>
    execFileSync(program!, ['run', join(root, 'scenarios', `${scenario}.json`), '--out', dir, ...more], { stdio: 'ignore' });

  test('the waterfall of the median message is that of the result', async () => {
    run('rc_send_pingpong', '--trace', 'json');
    const [workload] = (JSON.parse(readFileSync(join(dir, 'result.json'), 'utf8')) as Result).workloads;
    const { page, errors, close } = await openViewer(browser);
    await load(page, join(dir, 'trace.jsonl'));
    const { id, latency_ps } = workload.median_message;
    await page.fill('#search', `msg:${id}`);
    await page.click(`.message-row[data-message="${id}"]`);
    expect(await page.getAttribute('#stage-sum', 'data-ps')).toBe(String(latency_ps));
    const shown = await page
      .locator('#waterfall tbody tr')
      .evaluateAll((rows) =>
        rows.map((r) => [r.querySelector('th')!.textContent, Number(r.querySelector<HTMLElement>('td[data-ps]')!.dataset.ps)]),
      );
    expect(shown).toEqual(workload.breakdown_ns.filter((s) => s.p50_ps !== 0).map((s) => [s.stage, s.p50_ps]));
    expect(errors).toEqual([]);
    await close();
  });

  test.each([
    ['cases/wakeup_kept_by_a_second_poll', []],
    ['cases/cq_16_overruns', ['CQ overrun', 'asynchronous event']],
    ['cases/the_same_packet_lost_twice', ['packet dropped', 'NAK', 'retransmission']],
    ['cases/srq_limit_and_an_empty_srq', ['RNR NAK', 'RNR wait', 'SRQ limit']],
  ])('%s: sums, problems, and the same from both formats', async (scenario, kinds) => {
    run(scenario, '--trace', 'json,perfetto', '--trace-compress');
    const { page, errors, close } = await openViewer(browser);
    for (const file of ['trace.jsonl.gz', 'trace.perfetto.json.gz']) {
      await load(page, join(dir, file));
      const seen = await page.evaluate(() => {
        const { trace, problems } = (window as any).rdmasim.state.a.value;
        const m = trace.messages;
        const wrong = [];
        for (let r = 0; r < m.n; ++r) {
          if (m.status[r] !== 0 || m.stages.length === 0) continue;
          const sum = m.stages.reduce((x: number, column: Float64Array) => x + column[r], 0);
          if (sum !== m.total[r]) wrong.push([m.id[r], sum, m.total[r]]);
        }
        const said = trace.diagnostics.filter((d: any) => d.severity !== 'note').map((d: any) => d.text);
        return { wrong, said, kinds: [...new Set(problems.map((p: any) => p.kind))] };
      });
      expect(seen.wrong).toEqual([]);
      expect(seen.said).toEqual([]);
      if (kinds.length === 0) expect(seen.kinds).toEqual([]);
      else expect(seen.kinds).toEqual(expect.arrayContaining(kinds));
    }
    expect(errors).toEqual([]);
    await close();
  });
});
