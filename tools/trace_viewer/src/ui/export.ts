// SPDX-License-Identifier: Apache-2.0
// Saves the visible timeline as a picture.
import { instances } from './timeline';
import * as s from './state';

function save(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function fileName(extension: string): string {
  const base = s.a.value?.trace.header.scenario || 'trace';
  return `${base}${s.message.value > 0 ? `_wr${s.message.value}` : ''}.${extension}`;
}

export function svgText(): string {
  return instances.get('a')?.svg() ?? '';
}
export function exportSvg(): void {
  save(new Blob([svgText()], { type: 'image/svg+xml' }), fileName('svg'));
}
export async function exportPng(): Promise<void> {
  const blob = await pngBlob();
  if (blob) save(blob, fileName('png'));
}
export function pngBlob(): Promise<Blob | null> {
  const view = instances.get('a');
  if (!view) return Promise.resolve(null);
  view.hover = -1;
  view.paint();
  return new Promise((resolve) => view.canvas.toBlob(resolve, 'image/png'));
}
