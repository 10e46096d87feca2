// SPDX-License-Identifier: Apache-2.0
// Saves the visible timeline as a picture.
import type { TimelineView } from './timeline';
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

/** Timelines from top to bottom: one, or two when traces are compared. */
function shown(): TimelineView[] {
  return (['a', 'b'] as const).flatMap((side) => instances.get(side) ?? []);
}

export function svgText(): string {
  const views = shown();
  if (views.length < 2) return views[0]?.svg() ?? '';
  const parts: string[] = [];
  let y = 0;
  for (const [i, v] of views.entries()) {
    // Names within a part are made its own, and the part is placed under the ones before it.
    const text = v.svg().replace(/\bclip(\d+)\b/g, `clip${i}_$1`);
    parts.push(text.replace('<svg ', `<svg y="${y}" `));
    y += v.height;
  }
  const width = Math.max(...views.map((v) => v.width));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y}" viewBox="0 0 ${width} ${y}">\n${parts.join('')}</svg>\n`;
}
export function exportSvg(): void {
  save(new Blob([svgText()], { type: 'image/svg+xml' }), fileName('svg'));
}
export async function exportPng(): Promise<void> {
  const blob = await pngBlob();
  if (blob) save(blob, fileName('png'));
}
export function pngBlob(): Promise<Blob | null> {
  const views = shown();
  if (views.length === 0) return Promise.resolve(null);
  const whole = document.createElement('canvas');
  for (const v of views) v.paint(true);
  whole.width = Math.max(...views.map((v) => v.canvas.width));
  whole.height = views.reduce((h, v) => h + v.canvas.height, 0);
  const context = whole.getContext('2d')!;
  let y = 0;
  for (const v of views) {
    context.drawImage(v.canvas, 0, y);
    y += v.canvas.height;
    v.request();
  }
  return new Promise((resolve) => whole.toBlob(resolve, 'image/png'));
}
