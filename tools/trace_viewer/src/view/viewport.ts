// SPDX-License-Identifier: Apache-2.0
// The visible time window and its arithmetic: zoom about a point, pan, clamp. No drawing, no events.

export interface TimeWindow {
  from: number;
  to: number;
}

/** Shortest window, in ps. */
const kShortest = 100;

export class Scale {
  readonly perPixel: number;
  constructor(
    readonly window: TimeWindow,
    readonly left: number,
    readonly width: number,
  ) {
    this.perPixel = (window.to - window.from) / Math.max(1, width);
  }
  x(t: number): number {
    return this.left + (t - this.window.from) / this.perPixel;
  }
  t(x: number): number {
    return this.window.from + (x - this.left) * this.perPixel;
  }
}

/** Keeps the window within the trace (with a margin) and no shorter than can be drawn. */
export function clampWindow(w: TimeWindow, t0: number, t1: number): TimeWindow {
  const margin = Math.max((t1 - t0) * 0.05, kShortest);
  const longest = t1 - t0 + 2 * margin;
  const length = Math.min(Math.max(w.to - w.from, kShortest), longest);
  let from = w.from + (w.to - w.from - length) / 2;
  from = Math.min(Math.max(from, t0 - margin), t1 + margin - length);
  return { from, to: from + length };
}

/** `factor` < 1 zooms in; the time `about` keeps its place. */
export function zoom(w: TimeWindow, factor: number, about: number): TimeWindow {
  const floor = kShortest / (w.to - w.from);
  const f = Math.max(factor, Math.min(1, floor));
  return { from: about - (about - w.from) * f, to: about + (w.to - about) * f };
}

export function pan(w: TimeWindow, by: number): TimeWindow {
  return { from: w.from + by, to: w.to + by };
}

/** A window that shows [from, to] with some room. */
export function around(from: number, to: number, room = 0.08): TimeWindow {
  const length = Math.max(to - from, kShortest);
  return { from: from - length * room, to: from + length * (1 + room) };
}
