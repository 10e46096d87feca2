// SPDX-License-Identifier: Apache-2.0
// Draws the timeline from a scene description. Pure: the same scene gives the same picture, on a canvas or as SVG. Spans go through
// the pyramid, marks and values jump from pixel to pixel, so the cost follows the width of the view, not the length of the trace.
import type { Lifeline } from '../model/lifeline';
import { walkRow } from '../model/lod';
import { lowerBound } from '../model/sort';
import type { Trace } from '../model/types';
import type { Palette } from './colors';
import { drawAxis, drawCursor, drawGrid, drawLabels, drawGroup } from './draw_frame';
import { drawLifeline } from './draw_lifeline';
import { drawCounter, drawState } from './draw_values';
import type { Layout, LaneStrip, Strip } from './layout';
import { kAxisHeight, kLabelWidth, rowOfSpan } from './layout';
import type { Painter } from './painter';
import type { Scale } from './viewport';

export interface Scene {
  trace: Trace;
  layout: Layout;
  scale: Scale;
  /** Height of the canvas and position of the layout under the axis. */
  height: number;
  scrollY: number;
  palette: Palette;
  colors: string[];
  /** Spans that match the search, ascending; null without a search. */
  matches: Uint32Array | null;
  matchingInstants: Uint32Array | null;
  line: Lifeline | null;
  selected: { record: 'span' | 'instant' | 'packet'; index: number } | null;
  hover: number;
  /** Times of problems, ascending. */
  problems: Float64Array;
  /** Measured range. */
  measure: { from: number; to: number } | null;
  /** Time under the pointer, NaN when it is elsewhere. */
  cursor: number;
  /** Shown at the left of the axis. */
  title: string;
}

export const kFont = '11px system-ui, sans-serif';
const kSmall = '10px system-ui, sans-serif';
/** Blocks narrower than this many pixels are not split; more on a screen so large that there would be too many to paint. */
const kFinest = 1.5;
const kMostBlocks = 25_000;

export function drawTimeline(p: Painter, s: Scene): void {
  const width = kLabelWidth + s.scale.width;
  p.globalAlpha = 1;
  p.setLineDash([]);
  p.fillStyle = s.palette.background;
  p.fillRect(0, 0, width, s.height);
  p.save();
  p.beginPath();
  p.rect(0, kAxisHeight, width, s.height - kAxisHeight);
  p.clip();
  drawGrid(p, s);
  const visible = s.layout.strips.filter((strip) => top(s, strip) < s.height && top(s, strip) + strip.h > kAxisHeight);
  for (const strip of visible) if (strip.kind === 'group') drawGroup(p, s, strip, width);
  p.save();
  p.beginPath();
  p.rect(kLabelWidth, kAxisHeight, s.scale.width, s.height - kAxisHeight);
  p.clip();
  spans(p, s, visible);
  for (const strip of visible) {
    if (strip.kind === 'counter') drawCounter(p, s, strip, top(s, strip));
    else if (strip.kind === 'state') drawState(p, s, strip, top(s, strip));
    else if (strip.kind === 'marks' || strip.kind === 'spans') marks(p, s, strip);
  }
  if (s.line) drawLifeline(p, s, s.line);
  selection(p, s);
  measured(p, s);
  p.restore();
  drawLabels(p, s, visible);
  p.restore();
  drawAxis(p, s, width);
  drawCursor(p, s, width);
}

export function top(s: Scene, strip: { y: number }): number {
  return kAxisHeight + strip.y - s.scrollY;
}

/** Rectangles by colour, so that the fill style changes once per colour. One that continues the last one makes it longer. */
class Batch {
  private readonly lists = new Map<number, number[]>();
  private last: number[] = [];
  private lastPoint = -1;
  add(point: number, x: number, y: number, w: number, h: number): void {
    const end = this.last.length;
    if (
      point === this.lastPoint &&
      this.last[end - 3] === y &&
      this.last[end - 1] === h &&
      x <= this.last[end - 4] + this.last[end - 2] + 0.3
    ) {
      this.last[end - 2] = x + w - this.last[end - 4];
      return;
    }
    let list = this.lists.get(point);
    if (!list) this.lists.set(point, (list = []));
    list.push(x, y, w, h);
    this.last = list;
    this.lastPoint = point;
  }
  /** What comes next begins a rectangle of its own. */
  cut(): void {
    this.lastPoint = -1;
  }
  paint(p: Painter, colors: string[]): void {
    for (const [point, list] of this.lists) {
      p.fillStyle = colors[point];
      for (let i = 0; i < list.length; i += 4) p.fillRect(list[i], list[i + 1], list[i + 2], list[i + 3]);
    }
  }
}

function spans(p: Painter, s: Scene, visible: Strip[]): void {
  const { trace, scale } = s;
  const { from, to } = scale.window;
  const faded = s.matches !== null || s.line !== null;
  const batch = new Batch();
  const shown = rowsOf(s, visible);
  const rows = shown.length;
  const finest = scale.perPixel * Math.max(kFinest, (rows * scale.width) / kMostBlocks);
  const texts: [number, number, number, number][] = [];
  for (const { row, y, h, labelled } of shown) {
    let last = -Infinity;
    walkRow(trace.spans, trace.rows, trace.lod, row, from, to, finest, (t0, t1, point, span, busy) => {
      const x0 = Math.max(scale.x(t0), kLabelWidth - 1);
      const x1 = Math.min(scale.x(t1), kLabelWidth + scale.width + 1);
      if (x1 < last + 0.7) return;
      const w = Math.max(x1 - x0, 1);
      last = x0 + w;
      // The height of a block is the share of time in which it is busy.
      const height = span < 0 ? Math.max(3, Math.round(h * busy)) : h;
      if (span >= 0 && w > 3) batch.cut();
      batch.add(point, x0, y + h - height, w, height);
      if (span >= 0 && w > 38 && labelled) texts.push([span, x0, y + h / 2, w]);
    });
  }
  p.globalAlpha = faded ? 0.22 : 1;
  batch.paint(p, s.colors);
  p.globalAlpha = 1;
  if (s.matches) highlight(p, s, visible, s.matches);
  p.globalAlpha = faded ? 0.55 : 1;
  p.font = kSmall;
  p.textBaseline = 'middle';
  p.textAlign = 'left';
  p.fillStyle = faded ? s.palette.text : s.palette.onSpan;
  for (const [i, x, y, w] of texts) p.fillText(clip(spanLabel(trace, i), w - 6), x + 3, y);
  p.globalAlpha = 1;
}

function highlight(p: Painter, s: Scene, visible: Strip[], matches: Uint32Array): void {
  const { trace, scale } = s;
  const batch = new Batch();
  for (const { row, y, h } of rowsOf(s, visible)) {
    const end = lowerBound(matches, trace.rows.offset[row + 1], 0, matches.length);
    let k = lowerBound(matches, trace.rows.offset[row], 0, end);
    k = firstAt(trace, matches, scale.window.from, k, end);
    while (k < end) {
      const i = matches[k];
      if (trace.spans.start[i] > scale.window.to) break;
      const x0 = scale.x(trace.spans.start[i]);
      const w = Math.max(scale.x(trace.spans.start[i] + trace.spans.dur[i]) - x0, 1.5);
      batch.add(trace.spans.point[i], Math.max(x0, 0), y, Math.min(w, scale.width + kLabelWidth), h);
      // The next one that begins on another pixel.
      const next = firstAt(trace, matches, scale.t(x0 + w), k + 1, end);
      k = Math.max(k + 1, w <= 2 ? next : k + 1);
    }
  }
  batch.paint(p, s.colors);
}

/** Rows of spans on the screen: those of lanes, and those of folded components, which lie over each other. */
function rowsOf(s: Scene, visible: Strip[]): { row: number; y: number; h: number; labelled: boolean }[] {
  const out: { row: number; y: number; h: number; labelled: boolean }[] = [];
  for (const strip of visible) {
    const y = top(s, strip);
    if (strip.kind === 'component') for (const row of strip.rows) out.push({ row, y, h: strip.h - 1, labelled: false });
    if (strip.kind !== 'spans') continue;
    const h = strip.rowHeight;
    const labelled = h >= 12;
    for (let k = 0; k < strip.rows; ++k) out.push({ row: strip.firstRow + k, y: y + k * strip.step, h: h - 1, labelled });
  }
  return out;
}

function firstAt(trace: Trace, matches: Uint32Array, t: number, from: number, to: number): number {
  let lo = from;
  let hi = to;
  const { start, dur } = trace.spans;
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if (start[matches[mid]] + dur[matches[mid]] < t) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

export function spanLabel(trace: Trace, i: number): string {
  const name = trace.points[trace.spans.point[i]].name;
  const msg = trace.spans.msg[i];
  return `${name.slice(name.indexOf('.') + 1)}${msg > 0 ? ` #${msg}` : ''}`;
}

/** Shortens text to about `width` pixels. */
export function clip(text: string, width: number): string {
  const most = Math.floor(width / 5.6);
  return text.length <= most ? text : most > 2 ? `${text.slice(0, most - 1)}…` : '';
}

function marks(p: Painter, s: Scene, strip: LaneStrip & { kind: 'marks' | 'spans' }): void {
  const { trace, scale } = s;
  const y = top(s, strip);
  const h = strip.kind === 'marks' ? strip.h : 5;
  p.globalAlpha = s.line || s.matches ? 0.4 : 1;
  jump(trace.instants.t, trace.instantOffset[strip.lane], trace.instantOffset[strip.lane + 1], scale, (i, x) => {
    p.fillStyle = s.colors[trace.instants.point[i]];
    p.fillRect(x - 1, y, 2, h);
    p.fillRect(x - 2.5, y, 5, 3);
  });
  if (s.matchingInstants) matchingMarks(p, s, strip, y, h, s.matchingInstants);
  // One path for all triangles of a lane: a path each would cost more than everything else.
  p.fillStyle = s.palette.packet;
  p.beginPath();
  jump(
    trace.packets.t,
    trace.packetOffset[strip.lane],
    trace.packetOffset[strip.lane + 1],
    scale,
    (i, x) => {
      p.moveTo(x, y);
      p.lineTo(x + (trace.packets.tx[i] !== 0 ? 6 : -6), y + 3.5);
      p.lineTo(x, y + 7);
      p.closePath();
    },
    3,
  );
  p.fill();
  p.globalAlpha = 1;
}

/** Instants that match the search, in full colour. */
function matchingMarks(p: Painter, s: Scene, strip: { lane: number }, y: number, h: number, matches: Uint32Array): void {
  const { t, point } = s.trace.instants;
  const end = lowerBound(matches, s.trace.instantOffset[strip.lane + 1], 0, matches.length);
  const alpha = p.globalAlpha;
  p.globalAlpha = 1;
  let last = -Infinity;
  for (let k = lowerBound(matches, s.trace.instantOffset[strip.lane], 0, end); k < end; ++k) {
    const x = s.scale.x(t[matches[k]]);
    if (t[matches[k]] > s.scale.window.to) break;
    if (x < kLabelWidth || x < last + 1) continue;
    last = x;
    p.fillStyle = s.colors[point[matches[k]]];
    p.fillRect(x - 1, y, 2, h + 3);
    p.fillRect(x - 3.5, y, 7, 4);
  }
  p.globalAlpha = alpha;
}

/** Calls `at` for the first record on each pixel, or every `step` pixels. */
export function jump(
  t: Float64Array,
  from: number,
  to: number,
  scale: Scale,
  at: (i: number, x: number) => void,
  step = 1,
): void {
  let i = lowerBound(t, scale.window.from, from, to);
  while (i < to && t[i] <= scale.window.to) {
    const x = scale.x(t[i]);
    at(i, x);
    i = Math.max(i + 1, lowerBound(t, scale.t(x + step), i + 1, to));
  }
}

function selection(p: Painter, s: Scene): void {
  p.strokeStyle = s.palette.select;
  p.lineWidth = 2;
  for (const i of new Set([s.selected?.record === 'span' ? s.selected.index : -1, s.hover])) {
    if (i < 0) continue;
    const row = rowOfSpan(s.trace, i);
    const y = s.layout.rowY[row];
    const h = s.layout.rowH[row];
    if (Number.isNaN(y)) continue;
    const x0 = Math.max(s.scale.x(s.trace.spans.start[i]), kLabelWidth - 3);
    const x1 = Math.min(s.scale.x(s.trace.spans.start[i] + s.trace.spans.dur[i]), kLabelWidth + s.scale.width + 3);
    p.lineWidth = i === s.hover ? 1 : 2;
    if (x1 >= x0) p.strokeRect(x0 - 0.5, kAxisHeight + y - s.scrollY - h / 2 - 0.5, Math.max(x1 - x0, 2) + 1, h);
  }
  if (s.selected && s.selected.record !== 'span') {
    const records = s.selected.record === 'instant' ? s.trace.instants : s.trace.packets;
    const x = s.scale.x(records.t[s.selected.index]);
    p.fillStyle = s.palette.select;
    p.fillRect(x - 0.5, kAxisHeight, 1, s.height);
  }
}

function measured(p: Painter, s: Scene): void {
  if (!s.measure) return;
  const a = s.scale.x(Math.min(s.measure.from, s.measure.to));
  const z = s.scale.x(Math.max(s.measure.from, s.measure.to));
  p.globalAlpha = 0.15;
  p.fillStyle = s.palette.select;
  p.fillRect(a, kAxisHeight, z - a, s.height);
  p.globalAlpha = 1;
  p.fillRect(a, kAxisHeight, 1, s.height);
  p.fillRect(z, kAxisHeight, 1, s.height);
}
