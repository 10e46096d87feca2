// SPDX-License-Identifier: Apache-2.0
// What surrounds the records on the timeline: grid and axis of time, bands of hosts, names of lanes, scales of counters, and the line
// under the pointer with the values that counters have there.
import { formatTick, ticks } from '../model/time';
import type { Scene } from './draw';
import { clip, jump, kFont, top } from './draw';
import { stateName, valueAt } from './draw_values';
import type { Strip } from './layout';
import { isFold, kAxisHeight, kLabelWidth } from './layout';
import type { Painter } from './painter';
import { formatRate, isRate, kStep, profile, rateAt } from './rates';

const kSmall = '10px system-ui, sans-serif';
const kPixelsPerTick = 110;

export function drawGrid(p: Painter, s: Scene): void {
  const { from, to } = s.scale.window;
  p.fillStyle = s.palette.grid;
  for (const t of ticks(from, to, s.scale.width / kPixelsPerTick).at) {
    p.fillRect(Math.round(s.scale.x(t)), kAxisHeight, 1, s.height);
  }
}

export function drawGroup(p: Painter, s: Scene, strip: Strip & { kind: 'group' }, width: number): void {
  p.fillStyle = s.palette.band;
  p.fillRect(0, top(s, strip), width, strip.h);
}

export function drawLabels(p: Painter, s: Scene, visible: Strip[]): void {
  p.fillStyle = s.palette.label;
  p.fillRect(0, kAxisHeight, kLabelWidth - 1, Math.min(s.height, top(s, { y: s.layout.height })) - kAxisHeight);
  for (const strip of visible) if (strip.kind === 'group') drawGroup(p, s, strip, kLabelWidth);
  p.textBaseline = 'middle';
  for (const strip of visible) {
    p.textAlign = 'left';
    if (isFold(strip)) foldLabel(p, s, strip);
    else laneLabel(p, s, strip);
  }
  p.textAlign = 'left';
  p.fillStyle = s.palette.grid;
  p.fillRect(kLabelWidth - 1, kAxisHeight, 1, s.height);
}

function foldLabel(p: Painter, s: Scene, strip: Strip & { kind: 'group' | 'component' | 'more' }): void {
  const y = top(s, strip) + strip.h / 2;
  p.font = strip.kind === 'group' ? `600 ${kFont}` : strip.kind === 'component' ? `600 ${kSmall}` : kSmall;
  p.fillStyle = strip.kind === 'group' ? s.palette.text : s.palette.faint;
  const x = strip.kind === 'group' ? 6 : strip.kind === 'component' ? 8 : 20;
  p.fillText(`${strip.folded ? '▸' : '▾'} ${strip.name}`, x, y);
}

function laneLabel(p: Painter, s: Scene, strip: Exclude<Strip, { kind: 'group' | 'component' | 'more' }>): void {
  const y = top(s, strip);
  const under = strip.label.startsWith('·');
  p.font = kFont;
  p.fillStyle = strip.kind === 'counter' || under ? s.palette.faint : s.palette.text;
  const indent = under ? 24 : 18;
  const value = strip.kind === 'counter' || (strip.kind === 'state' && !Number.isNaN(s.cursor));
  const room = kLabelWidth - indent - (value ? 66 : 6);
  p.fillText(clip(strip.label, room), indent, y + Math.min(strip.h, 18) / 2);
  if (strip.kind === 'counter') counterScale(p, s, strip, y);
  else if (strip.kind === 'state' && !Number.isNaN(s.cursor)) {
    const v = valueAt(s.trace.states, s.trace.states.series[strip.series], s.cursor);
    if (!Number.isNaN(v)) right(p, s.palette.text, stateName(s.trace, strip.lane, v), y + strip.h / 2);
  }
}

/** The scale of a counter, top and bottom; with the pointer on the timeline, the value there. */
function counterScale(p: Painter, s: Scene, strip: Strip & { kind: 'counter' | 'state' }, y: number): void {
  const series = s.trace.counters.series[strip.series];
  if (isRate(s.trace, strip.series)) return rateScale(p, s, strip, y);
  const unit = s.trace.points[series.point].args[0] ?? '';
  p.font = kSmall;
  const value = Number.isNaN(s.cursor) ? NaN : valueAt(s.trace.counters, series, s.cursor);
  if (!Number.isNaN(value)) {
    right(p, s.palette.text, `${formatValue(value)} ${unit}`, y + 7);
    right(p, s.palette.faint, `of ${formatValue(Math.max(series.max, 0))}`, y + strip.h - 6);
    return;
  }
  right(p, s.palette.faint, `${formatValue(Math.max(series.max, 0))} ${unit}`, y + 7);
  right(p, s.palette.faint, formatValue(Math.min(series.min, 0)), y + strip.h - 6);
}

/** Of a counter that is shown by its slope: the steepest on the screen, and the one under the pointer. */
function rateScale(p: Painter, s: Scene, strip: Strip & { kind: 'counter' | 'state' }, y: number): void {
  const { counters, points } = s.trace;
  const series = counters.series[strip.series];
  const most = profile(counters, series, s.scale).reduce((a, b) => Math.max(a, b), 0);
  const top = formatRate(most, points[series.point]);
  if (Number.isNaN(s.cursor)) {
    right(p, s.palette.faint, top, y + 7);
    return right(p, s.palette.faint, '0', y + strip.h - 6);
  }
  right(p, s.palette.text, formatRate(rateAt(counters, series, s.cursor, s.scale.perPixel * kStep), points[series.point]), y + 7);
  right(p, s.palette.faint, `of ${top}`, y + strip.h - 6);
}

function right(p: Painter, style: string, text: string, y: number): void {
  p.fillStyle = style;
  p.font = kSmall;
  p.textAlign = 'right';
  p.fillText(clip(text, 84), kLabelWidth - 6, y);
}

/** A counter's value in at most six characters and a suffix. */
export function formatValue(v: number): string {
  const a = Math.abs(v);
  for (const [factor, suffix] of [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e4, 'k'],
  ] as const) {
    if (a >= factor) return `${+(v / (suffix === 'k' ? 1e3 : factor)).toPrecision(4)}${suffix}`;
  }
  return String(+v.toPrecision(6)).replace('-', '−');
}

export function drawAxis(p: Painter, s: Scene, width: number): void {
  p.fillStyle = s.palette.label;
  p.fillRect(0, 0, width, kAxisHeight);
  p.fillStyle = s.palette.grid;
  p.fillRect(0, kAxisHeight - 1, width, 1);
  const { from, to } = s.scale.window;
  const { step, at } = ticks(from, to, s.scale.width / kPixelsPerTick);
  p.font = kFont;
  p.textBaseline = 'middle';
  p.textAlign = 'left';
  p.fillStyle = s.palette.faint;
  p.fillText(clip(s.title, kLabelWidth - 16), 8, kAxisHeight / 2);
  for (const t of at) {
    const x = Math.round(s.scale.x(t));
    if (x < kLabelWidth) continue;
    p.fillStyle = s.palette.grid;
    p.fillRect(x, kAxisHeight - 7, 1, 7);
    p.fillStyle = s.palette.faint;
    if (x < width - 60) p.fillText(formatTick(t, step), x + 4, kAxisHeight / 2 - 2);
  }
  p.fillStyle = s.palette.problem;
  jump(s.problems, 0, s.problems.length, s.scale, (_, x) => {
    if (x < kLabelWidth) return;
    p.beginPath();
    p.moveTo(x - 4, kAxisHeight - 8);
    p.lineTo(x + 4, kAxisHeight - 8);
    p.lineTo(x, kAxisHeight - 1);
    p.closePath();
    p.fill();
  });
}

/** The line under the pointer and its time on the axis. */
export function drawCursor(p: Painter, s: Scene, width: number): void {
  if (Number.isNaN(s.cursor)) return;
  const x = s.scale.x(s.cursor);
  if (x < kLabelWidth || x > width) return;
  p.globalAlpha = 0.5;
  p.fillStyle = s.palette.cursor;
  p.fillRect(Math.round(x), kAxisHeight - 8, 1, s.height);
  p.globalAlpha = 1;
  const text = formatTick(s.cursor, Math.max(1, 10 ** Math.floor(Math.log10(s.scale.perPixel))));
  const w = text.length * 6 + 10;
  const left = Math.min(Math.max(x - w / 2, kLabelWidth), width - w);
  p.fillStyle = s.palette.band;
  p.fillRect(left, 2, w, kAxisHeight - 11);
  p.fillStyle = s.palette.text;
  p.font = kFont;
  p.textAlign = 'center';
  p.textBaseline = 'middle';
  p.fillText(text, left + w / 2, (kAxisHeight - 7) / 2);
  p.textAlign = 'left';
}
