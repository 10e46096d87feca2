// SPDX-License-Identifier: Apache-2.0
// Types of synthetic.mjs.
export const kSpansPerMessage: number;
export const kStages: string[];
export function nativeLines(count: number): Generator<string>;
export function chromeLines(count: number): Generator<string>;
export function nativeText(count: number): string;
export function chromeText(count: number): string;
export function write(format: 'native' | 'chrome', spans: number, path: string): Promise<void>;
