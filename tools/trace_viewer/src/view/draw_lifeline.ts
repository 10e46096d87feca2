// SPDX-License-Identifier: Apache-2.0
// Draws the life-line of a message over the timeline: its spans in full colour with their waits hatched, and arrows along causes,
// solid where a cause is recorded, dashed where it is implied.
import type { Lifeline } from '../model/lifeline';
import type { Scene } from './draw';
import { clip, spanLabel } from './draw';
import { kAxisHeight, kLabelWidth, rowOfSpan } from './layout';
import type { Painter } from './painter';

/** Arrows between the same rows are this many pixels apart. */
const kApart = 7;

interface Place {
  x0: number;
  x1: number;
  y: number;
  h: number;
}

export function drawLifeline(p: Painter, s: Scene, line: Lifeline): void {
  const places = new Map<number, Place>();
  const place = (i: number): Place | null => {
    let at = places.get(i);
    if (at) return at;
    const row = rowOfSpan(s.trace, i);
    const y = s.layout.rowY[row];
    if (Number.isNaN(y)) return null;
    const { start, dur } = s.trace.spans;
    at = {
      x0: s.scale.x(start[i]),
      x1: s.scale.x(start[i] + dur[i]),
      y: kAxisHeight + y - s.scrollY,
      h: s.layout.rowH[row] - 1,
    };
    places.set(i, at);
    return at;
  };
  for (const draw of [waited, body]) {
    for (const i of line.spans) {
      const at = place(i);
      if (at) draw(p, s, i, at);
    }
  }
  // Arrows that would lie over each other are drawn once: a read of a mebibyte has thousands.
  const drawn = new Set<string>();
  for (const implied of [false, true]) {
    p.lineWidth = implied ? 1 : 1.2;
    p.globalAlpha = line.arrows.length > 40 ? 0.7 : 1;
    p.strokeStyle = p.fillStyle = implied ? s.palette.implied : s.palette.arrow;
    p.setLineDash(implied ? [4, 3] : []);
    for (const a of line.arrows) {
      if (a.implied !== implied) continue;
      const from = place(a.from);
      const to = place(a.to);
      if (!from || !to) continue;
      const key = `${from.y} ${Math.round(from.x1 / kApart)} ${to.y} ${Math.round(to.x0 / kApart)}`;
      if (drawn.has(key)) continue;
      drawn.add(key);
      arrow(p, s, from, to);
    }
  }
  p.setLineDash([]);
  p.globalAlpha = 1;
}

function waited(p: Painter, s: Scene, i: number, at: Place): void {
  const right = kLabelWidth + s.scale.width;
  const width = s.trace.spans.wait[i] / s.scale.perPixel;
  if (width <= 1 || at.x0 <= kLabelWidth || at.x0 - width >= right) return;
  hatch(p, s, Math.max(at.x0 - width, kLabelWidth), at.y - at.h / 2 - 0.5, Math.min(at.x0, right), at.h);
}

function body(p: Painter, s: Scene, i: number, at: Place): void {
  const right = kLabelWidth + s.scale.width;
  const y = at.y - at.h / 2 - 0.5;
  if (at.x1 < kLabelWidth || at.x0 > right) return;
  const x0 = Math.max(at.x0, kLabelWidth - 2);
  const w = Math.max(Math.min(at.x1, right + 2) - x0, 2);
  p.fillStyle = s.colors[s.trace.spans.point[i]];
  p.fillRect(x0, y, w, at.h);
  if (w > 4) {
    p.strokeStyle = s.palette.arrow;
    p.lineWidth = 1;
    p.strokeRect(x0 + 0.5, y + 0.5, w - 1, at.h - 1);
  }
  if (w > 38 && at.h >= 11) {
    p.fillStyle = s.palette.onSpan;
    p.font = '10px system-ui, sans-serif';
    p.textBaseline = 'middle';
    p.textAlign = 'left';
    p.fillText(clip(spanLabel(s.trace, i), w - 6), x0 + 3, at.y - 0.5);
  }
}

function hatch(p: Painter, s: Scene, x0: number, y: number, x1: number, h: number): void {
  p.save();
  p.beginPath();
  p.rect(x0, y, x1 - x0, h);
  p.clip();
  p.strokeStyle = s.palette.arrow;
  p.globalAlpha = 0.6;
  p.lineWidth = 1;
  p.beginPath();
  for (let x = x0 - h; x < x1; x += 5) {
    p.moveTo(x, y + h);
    p.lineTo(x + h, y);
  }
  p.stroke();
  p.restore();
  p.globalAlpha = 1;
}

function arrow(p: Painter, s: Scene, from: Place, to: Place): void {
  const right = kLabelWidth + s.scale.width;
  // A cause may still be at work when its effect begins: the arrow leaves it then. An effect that was there before its cause is a
  // wait that the cause ends: the arrow goes to its end.
  const ends = from.x0 > to.x0;
  const x0 = ends ? from.x1 : Math.min(from.x1, Math.max(from.x0, to.x0));
  const x1 = ends ? Math.max(to.x0, Math.min(to.x1, Math.max(from.x1, to.x0))) : to.x0;
  if (Math.max(x0, x1) < kLabelWidth - 200 || Math.min(x0, x1) > right + 200) return;
  if (Math.abs(to.y - from.y) < 1 && Math.abs(x1 - x0) < 3) return;
  const bend = Math.min(Math.max(Math.abs(x1 - x0) / 2, 10), 40);
  p.beginPath();
  p.moveTo(x0, from.y);
  p.bezierCurveTo(x0 + bend, from.y, x1 - bend, to.y, x1 - 2, to.y);
  p.stroke();
  p.setLineDash([]);
  p.beginPath();
  p.moveTo(x1, to.y);
  p.lineTo(x1 - 6, to.y - 3);
  p.lineTo(x1 - 6, to.y + 3);
  p.closePath();
  p.fill();
  if (p.lineWidth === 1) p.setLineDash([4, 3]);
}
