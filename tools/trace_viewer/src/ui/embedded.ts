// SPDX-License-Identifier: Apache-2.0
// Traces that are part of the page: <script type="application/octet-stream;base64" id="rdmasim-trace" data-name="…"> with the bytes
// of a trace, plain or gzip, in base64. The contract is in README.md.
import { open } from './actions';

/** Opens what is embedded; false when nothing is. */
export async function openEmbedded(): Promise<boolean> {
  const first = document.getElementById('rdmasim-trace');
  if (!first) return false;
  await openScript(first, 'a');
  const second = document.getElementById('rdmasim-trace-b');
  if (second) await openScript(second, 'b');
  return true;
}

async function openScript(script: HTMLElement, side: 'a' | 'b'): Promise<void> {
  const blob = new Blob(fromBase64(script.textContent ?? '') as Uint8Array<ArrayBuffer>[]);
  script.textContent = '';
  await open(blob, script.dataset.name ?? 'embedded trace', side);
}

/** Decodes in pieces, so that no string is larger than it must be. White space between groups of four is allowed. */
export function fromBase64(text: string): Uint8Array[] {
  const clean = /\s/.test(text) ? text.replace(/\s+/g, '') : text;
  const pieces: Uint8Array[] = [];
  const step = 4 << 18;
  for (let at = 0; at < clean.length; at += step) {
    const binary = atob(clean.slice(at, at + step));
    const piece = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; ++i) piece[i] = binary.charCodeAt(i);
    pieces.push(piece);
  }
  return pieces;
}
