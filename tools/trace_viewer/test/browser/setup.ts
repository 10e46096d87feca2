// SPDX-License-Identifier: Apache-2.0
// What the browser tests share: one browser per file, a fresh page per test that must not complain, and a folder of traces.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import type { Viewer } from '../harness.mjs';
import { launch, openViewer, whyNot } from '../harness.mjs';
import { chromeText, nativeText } from '../synthetic.mjs';

/** Messages in the traces native.jsonl and chrome.json. */
export const kMessages = 200;
export const data = (name: string) => fileURLToPath(new URL(`../data/${name}`, import.meta.url));
export const kLost = data('lost_packet_waits_for_the_ack_timeout.jsonl.gz');

export interface Bench {
  browser: Browser;
  dir: string;
  viewer: Viewer;
  page: Page;
  /** Writes a file and returns its path. */
  file: (name: string, content: string | Uint8Array) => string;
  /** Length of the visible window, in ps. */
  windowLength: () => Promise<number>;
}

/** Registers the hooks; the members are there inside tests. */
export function useViewer(): Bench {
  const b = {
    file: (name, content) => {
      const path = join(b.dir, name);
      writeFileSync(path, content);
      return path;
    },
    windowLength: () =>
      b.page.evaluate(() => {
        const w = (window as any).rdmasim.state.view.value;
        return w.to - w.from;
      }),
  } as Bench;
  beforeAll(async () => {
    const missing = whyNot();
    if (missing) throw new Error(`the browser tests cannot run: ${missing}; npm run test:unit needs no browser`);
    b.dir = mkdtempSync(join(tmpdir(), 'trace_viewer_'));
    b.file('native.jsonl', nativeText(kMessages));
    b.file('chrome.json', chromeText(kMessages));
    b.browser = await launch();
  });
  afterAll(async () => {
    await b.browser?.close();
    if (b.dir) rmSync(b.dir, { recursive: true });
  });
  beforeEach(async () => {
    b.viewer = await openViewer(b.browser);
    b.page = b.viewer.page;
  });
  afterEach(async () => {
    expect(b.viewer.errors).toEqual([]);
    await b.viewer.close();
  });
  return b;
}
