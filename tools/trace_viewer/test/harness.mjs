// SPDX-License-Identifier: Apache-2.0
// Drives the built page in Debian's Chromium: opens it from disk, loads files, measures opening times, frames and memory. Used by the
// browser tests and the bench. CHROMIUM names another browser.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

export const kPage = fileURLToPath(new URL('../dist/index.html', import.meta.url));
const kBrowser = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** The reason why the browser tests cannot run, or ''. */
export function whyNot() {
  if (!existsSync(kBrowser)) return `${kBrowser} is missing (apt-get install chromium, or set CHROMIUM)`;
  if (!existsSync(kPage)) return `${kPage} is missing (npm run build)`;
  return '';
}

/** A browser of its own. `--disable-gpu`: test machines have none. */
export function launch() {
  return chromium.launch({
    executablePath: kBrowser,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

/** A page with the viewer from disk; `errors` collects everything that the console or the page complains about. */
export async function openViewer(
  browser,
  { path = kPage, hash = '', width = 1280, height = 800, dark = false, touch = false } = {},
) {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: dark ? 'dark' : 'light',
    hasTouch: touch,
    acceptDownloads: true,
  });
  const page = await context.newPage();
  const errors = [];
  page.on('console', (m) => {
    if (m.type() === 'error' || m.type() === 'warning') errors.push(`${m.type()}: ${m.text()}`);
  });
  page.on('pageerror', (e) => errors.push(`page: ${e.message}`));
  page.on('request', (r) => {
    if (!/^(file|data|blob):/.test(r.url())) errors.push(`network: ${r.url()}`);
  });
  await page.goto(pathToFileURL(path).href + hash);
  await page.waitForFunction(() => window.rdmasim !== undefined);
  return { page, errors, close: () => context.close() };
}

/** Loads a file through the open button and waits until it is shown or refused. Returns milliseconds until it was painted. */
export async function load(page, file, side = 'a') {
  await page.evaluate((s) => {
    window.rdmasim.state.failure.value = '';
    window.loadBegun = 0;
    document
      .querySelector(`#open-${s}, #file-${s}`)
      .addEventListener('change', () => (window.loadBegun = performance.now()), { once: true, capture: true });
    window.loadBefore = window.rdmasim.state[s].value;
  }, side);
  await page.setInputFiles(`#open-${side}`, file);
  await page.waitForFunction(
    (s) => {
      const st = window.rdmasim.state;
      return !st.loading.value && (st.failure.value !== '' || (st[s].value !== null && st[s].value !== window.loadBefore));
    },
    side,
    { timeout: 180_000 },
  );
  return page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now() - window.loadBegun)))),
  );
}

const percentile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];

/** Pans and zooms over the whole trace; returns frame intervals and drawing times in ms. */
export async function measureFrames(page, steps = 240) {
  const r = await page.evaluate(async (count) => {
    const { state, instances, setView } = window.rdmasim;
    const t = state.a.value.trace;
    const view = instances.get('a');
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const whole = { from: t.t0, to: t.t1 };
    setView(whole);
    await frame();
    await frame();
    view.drawTimes.length = 0;
    const intervals = [];
    let last = performance.now();
    for (let i = 0; i < count; ++i) {
      // Zoom into the middle, pan at every depth, and out again.
      const depth = Math.sin((Math.PI * i) / count) ** 2;
      const length = (whole.to - whole.from) * 10 ** (-4.5 * depth);
      const middle = whole.from + (whole.to - whole.from) * (0.5 + 0.02 * Math.sin(i / 5) * (1 - depth));
      setView({ from: middle - length / 2, to: middle + length / 2 });
      await frame();
      const now = performance.now();
      intervals.push(now - last);
      last = now;
    }
    return { intervals, draws: [...view.drawTimes] };
  }, steps);
  const frames = r.intervals.slice(2).sort((a, b) => a - b);
  const draws = r.draws.slice().sort((a, b) => a - b);
  return {
    frameP50: percentile(frames, 0.5),
    frameP95: percentile(frames, 0.95),
    frameMax: frames[frames.length - 1],
    drawP50: percentile(draws, 0.5),
    drawP95: percentile(draws, 0.95),
    drawMax: draws[draws.length - 1],
  };
}

/** Largest resident memory of any renderer process so far, in MiB (VmHWM). */
export function rendererPeakMiB() {
  let most = 0;
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      if (!command.includes('--type=renderer') || !command.includes('chrom')) continue;
      const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
      if (peak) most = Math.max(most, Number(peak[1]) / 1024);
    } catch {
      // the process has ended meanwhile
    }
  }
  return most;
}
