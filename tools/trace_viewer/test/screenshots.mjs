// SPDX-License-Identifier: Apache-2.0
// Takes the pictures of the README from runs of the simulator.
//   RDMASIM=build/ci/rdmasim node test/screenshots.mjs
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch, load, openViewer, whyNot } from './harness.mjs';

const program = process.env.RDMASIM;
if (whyNot() !== '' || !program) {
  console.error(whyNot() || 'RDMASIM must name the simulator');
  process.exit(2);
}
const root = fileURLToPath(new URL('../../../', import.meta.url));
const dir = mkdtempSync(join(tmpdir(), 'trace_viewer_pictures_'));
const run = (scenario) => {
  const out = join(dir, scenario.replace('/', '_'));
  execFileSync(program, ['run', join(root, 'scenarios', `${scenario}.json`), '--trace', 'json', '--out', out], {
    stdio: 'ignore',
  });
  return join(out, 'trace.jsonl');
};
const browser = await launch();

async function picture(name, traces, dark, act) {
  const { page, errors, close } = await openViewer(browser, { dark });
  await load(page, traces[0]);
  if (traces[1]) await load(page, traces[1], 'b');
  await act(page);
  await page.mouse.move(1, 799);
  await page.waitForTimeout(300);
  await page.screenshot({ path: fileURLToPath(new URL(`../screenshots/${name}.png`, import.meta.url)) });
  for (const e of errors) console.error(`${name}: ${e}`);
  await close();
}

try {
  await picture('message', [run('rc_send_pingpong')], false, async (page) => {
    await page.click('.message-row[data-message="7"]');
    await page.keyboard.press('m');
    await page.keyboard.press('c');
  });
  await picture('packets', [run('cases/the_same_packet_lost_twice')], false, async (page) => {
    await page.getByRole('tab', { name: 'Packets' }).click();
    await page.locator('.rung-row.bad').first().click();
    await page.keyboard.press('m');
    await page.keyboard.press('c');
    await page.click('.hex [data-at="51"]');
  });
  const events = ['events/client_polls_server_polls', 'events/client_sleeps_server_sleeps'].map(run);
  await picture('compare', events, true, async (page) => {
    await page.locator('.pair-row[aria-rowindex="3"]').click();
    await page.keyboard.press('m');
    await page.keyboard.press('c');
  });
} finally {
  await browser.close();
  rmSync(dir, { recursive: true });
}
