// SPDX-License-Identifier: Apache-2.0
// Types of harness.mjs.
import type { Browser, Page } from 'playwright-core';
export const kPage: string;
export function whyNot(): string;
export function launch(): Promise<Browser>;
export interface Viewer {
  page: Page;
  errors: string[];
  close(): Promise<void>;
}
export function openViewer(
  browser: Browser,
  options?: { path?: string; hash?: string; width?: number; height?: number; dark?: boolean; touch?: boolean },
): Promise<Viewer>;
export function load(page: Page, file: string, side?: 'a' | 'b'): Promise<number>;
export interface Frames {
  frameP50: number;
  frameP95: number;
  frameMax: number;
  drawP50: number;
  drawP95: number;
  drawMax: number;
}
export function measureFrames(page: Page, steps?: number): Promise<Frames>;
export function rendererPeakMiB(): number;
