// SPDX-License-Identifier: Apache-2.0
// Keys of the page. Keys typed into fields are left alone, but for Escape.
import { around, pan, zoom } from '../view/viewport';
import { clearSelection, everything, reachOfBoth, setView, stepMatch, stepCause, stepMessage, stepSpan, whole } from './actions';
import * as s from './state';
import { instances } from './timeline';

export const kKeys: [string, string][] = [
  ['W, +', 'zoom in'],
  ['S, −', 'zoom out'],
  ['A, ←', 'move left'],
  ['D, →', 'move right'],
  ['↑, ↓', 'scroll lanes'],
  ['n, p', 'next, previous message (of the filtered table)'],
  ['., ,', 'next, previous match of the search'],
  ['], [', 'next, previous span in the lane'],
  ['>, <', 'to the effect, the cause of the selected span'],
  ['/', 'search'],
  ['f', 'fit the selected message or span'],
  ['0', 'fit all messages'],
  ['9', 'fit the whole trace'],
  ['m', 'only the lanes of the selected message'],
  ['c', 'compact: one row per lane, no counters'],
  ['z', 'zoom to the measured range (shift and drag measures)'],
  ['Esc', 'clear selection, close'],
  ['?', 'this help'],
];

export function attachKeys(): void {
  document.addEventListener('keydown', (e) => {
    const target = e.target as HTMLElement;
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && (target as HTMLInputElement).type !== 'checkbox';
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (typing) {
      if (e.key === 'Escape') target.blur();
      return;
    }
    // Arrows belong to whatever widget has the focus, unless that is the timeline or nothing.
    const free = target === document.body || target.tagName === 'CANVAS';
    if (e.key.startsWith('Arrow') && !free) return;
    if (press(e.key)) e.preventDefault();
  });
}

function press(key: string): boolean {
  const t = s.a.value?.trace;
  const w = s.view.value;
  const length = w.to - w.from;
  const middle = (w.from + w.to) / 2;
  if (key === '?') {
    s.helpOpen.value = !s.helpOpen.value;
    return true;
  }
  if (key === '/') {
    document.querySelector<HTMLInputElement>('#search')?.focus();
    return true;
  }
  if (key === 'Escape') {
    if (s.helpOpen.value) s.helpOpen.value = false;
    else clearSelection();
    return true;
  }
  if (!t) return false;
  switch (key.length === 1 ? key.toLowerCase() : key) {
    case 'w':
    case '+':
    case '=':
      setView(zoom(w, 0.7, middle));
      return true;
    case 's':
    case '-':
    case '_':
      setView(zoom(w, 1 / 0.7, middle));
      return true;
    case 'a':
    case 'ArrowLeft':
      setView(pan(w, -length * 0.15));
      return true;
    case 'd':
    case 'ArrowRight':
      setView(pan(w, length * 0.15));
      return true;
    case 'ArrowUp':
      instances.get('a')?.scrollBy(-60);
      return true;
    case 'ArrowDown':
      instances.get('a')?.scrollBy(60);
      return true;
    case 'n':
      stepMessage(1);
      return true;
    case 'p':
      stepMessage(-1);
      return true;
    case '.':
      stepMatch(1);
      return true;
    case ',':
      stepMatch(-1);
      return true;
    case ']':
      stepSpan(1);
      return true;
    case '[':
      stepSpan(-1);
      return true;
    case '>':
      stepCause(1);
      return true;
    case '<':
      stepCause(-1);
      return true;
    case '0':
      setView(whole(t));
      return true;
    case '9':
      setView(everything(t));
      return true;
    case 'm':
      s.onlyMessageLanes.value = !s.onlyMessageLanes.value;
      return true;
    case 'c':
      s.compactLanes.value = !s.compactLanes.value;
      return true;
    case 'f':
      fit();
      return true;
    case 'z':
      zoomToMeasure();
      return true;
    default:
      return false;
  }
}

function fit(): void {
  const t = s.a.value!.trace;
  const r = s.messageRow.value;
  const sel = s.selected.value;
  if (r >= 0) setView(around(...reachOfBoth(t, r)));
  else if (sel?.record === 'span')
    setView(around(t.spans.start[sel.index], t.spans.start[sel.index] + t.spans.dur[sel.index], 0.5));
}

function zoomToMeasure(): void {
  const range = s.range.value;
  if (range && range.to > range.from) setView(range);
}
