// SPDX-License-Identifier: Apache-2.0
// Types of synthetic_bytes.mjs.
export const kBytesOf: Record<string, string>;
export function spanBytes(name: string, id: number, args: number[]): string;
export function frameHead(qpn: number, psn: number, id: number): string;
