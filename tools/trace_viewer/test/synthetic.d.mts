// SPDX-License-Identifier: Apache-2.0
// Types of synthetic.mjs.
export const kSpansPerMessage: number;
export const kStages: string[];
export function nativeLines(count: number, raw?: boolean): Generator<string>;
export function chromeLines(count: number): Generator<string>;
export function nativeText(count: number, raw?: boolean): string;
export function chromeText(count: number): string;
export function write(format: 'native' | 'bytes' | 'chrome', spans: number, path: string): Promise<void>;
