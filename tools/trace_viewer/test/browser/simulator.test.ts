// SPDX-License-Identifier: Apache-2.0
// A run of the simulator itself, when RDMASIM names its program: the waterfall of the median message says the same as the result
// of the run, picosecond by picosecond.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
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

test.skipIf(!program)('the waterfall of the median message is that of the result', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'trace_viewer_run_'));
  const browser = await launch();
  try {
    execFileSync(program!, ['run', join(root, 'scenarios/rc_send_pingpong.json'), '--trace', 'json', '--out', dir], {
      stdio: 'ignore',
    });
    const [workload] = (JSON.parse(readFileSync(join(dir, 'result.json'), 'utf8')) as Result).workloads;
    const { page, errors } = await openViewer(browser);
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
  } finally {
    await browser.close();
    rmSync(dir, { recursive: true });
  }
});
