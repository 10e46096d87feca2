// SPDX-License-Identifier: Apache-2.0
// Prints how long a large trace takes to open, how smoothly it pans and zooms, and what memory it takes.
//   node test/bench.mjs [SPANS] [FORMAT…]     default: 2000000 native bytes chrome native.gz
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { launch, load, measureFrames, openViewer, rendererPeakMiB, whyNot } from './harness.mjs';
import { write } from './synthetic.mjs';

const spans = Number(process.argv[2] ?? 2_000_000);
const formats = process.argv.length > 3 ? process.argv.slice(3) : ['native', 'bytes', 'chrome', 'native.gz'];
if (whyNot() !== '') {
  console.error(whyNot());
  process.exit(2);
}
const dir = mkdtempSync(join(tmpdir(), 'trace_viewer_bench_'));
console.log(`${cpus().length} CPUs (${cpus()[0].model}), load average ${loadavg()[0].toFixed(1)}, ${spans} spans`);
console.log('format        MB    open s   frame ms p50 p95 max      draw ms p50 p95 max     peak MiB');
try {
  for (const format of formats) {
    const path = join(dir, `trace.${format.includes('chrome') ? 'json' : 'jsonl'}${format.endsWith('.gz') ? '.gz' : ''}`);
    await write(format.replace('.gz', ''), spans, path);
    const browser = await launch();
    const { page, errors } = await openViewer(browser);
    const ms = await load(page, path);
    const f = await measureFrames(page);
    const n = (x) => x.toFixed(1).padStart(6);
    console.log(
      `${format.padEnd(10)}${(statSync(path).size / 1e6).toFixed(0).padStart(6)}  ${(ms / 1000).toFixed(2).padStart(8)}   ` +
        `      ${n(f.frameP50)}${n(f.frameP95)}${n(f.frameMax)}        ${n(f.drawP50)}${n(f.drawP95)}${n(f.drawMax)}      ${rendererPeakMiB().toFixed(0).padStart(8)}`,
    );
    for (const e of errors) console.log(`  ${e}`);
    await browser.close();
    rmSync(path);
  }
} finally {
  rmSync(dir, { recursive: true });
}
