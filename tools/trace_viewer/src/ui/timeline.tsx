// SPDX-License-Identifier: Apache-2.0
// The timeline as a component: a canvas that is painted at most once per frame, with mouse, wheel, touch and keyboard. What is painted
// is in view/draw.ts; what a key or click means is in actions.ts.
import { effect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { drawTimeline } from '../view/draw';
import type { Scene } from '../view/draw';
import { componentOf } from '../model/lanes';
import { isFold, kAxisHeight, kLabelWidth, layOut } from '../view/layout';
import type { Layout } from '../view/layout';
import { SvgPainter } from '../view/painter';
import { Scale, pan, zoom } from '../view/viewport';
import { revealLane, selectMark, selectMessage, selectSpan, setView, toggleFold } from './actions';
import { hitTest } from './hit';
import { attachPointer } from './pointer';
import * as s from './state';
import type { Side } from './state';

/** Timeline instances by side, for exports and tests. */
export const instances = new Map<Side, TimelineView>();

export class TimelineView {
  scrollY = 0;
  hover = -1;
  /** Times of the last frames, in ms: drawing only. */
  readonly drawTimes: number[] = [];
  private frame = 0;
  private cached: { groups: unknown; folds: unknown; compact: boolean; layout: Layout } | null = null;
  /** Time under the pointer in terms of trace a, for all timelines; NaN when it is elsewhere. */
  static cursor = NaN;
  private revealed = 0;
  private shown: unknown = null;

  constructor(
    readonly canvas: HTMLCanvasElement,
    readonly tip: HTMLElement,
    readonly side: Side,
  ) {}

  get source() {
    return this.side === 'a' ? s.a.value : s.b.value;
  }
  get width(): number {
    return this.canvas.clientWidth;
  }
  get height(): number {
    return this.canvas.clientHeight;
  }
  get scale(): Scale {
    const w = s.view.value;
    const shift = this.side === 'b' ? s.offsetB.value : 0;
    return new Scale({ from: w.from + shift, to: w.to + shift }, kLabelWidth, Math.max(10, this.width - kLabelWidth));
  }
  get layout(): Layout {
    const groups = this.side === 'a' ? s.groups.value : s.groupsB.value;
    const folds = s.toggledFolds.value;
    const compact = s.compactLanes.value;
    if (this.cached?.groups !== groups || this.cached.folds !== folds || this.cached.compact !== compact) {
      this.cached = { groups, folds, compact, layout: layOut(this.source!.trace, groups, { toggled: folds, compact }) };
    }
    return this.cached.layout;
  }

  /** The measured range in times of this trace. */
  private get measured(): { from: number; to: number } | null {
    const r = s.range.value;
    const shift = this.side === 'b' ? s.offsetB.value : 0;
    return r && { from: r.from + shift, to: r.to + shift };
  }

  scene(): Scene | null {
    const source = this.source;
    if (!source) return null;
    if (this.shown !== source) {
      this.shown = source;
      this.scrollY = 0;
    }
    const layout = this.layout;
    this.scrollY = Math.max(0, Math.min(this.scrollY, layout.height - (this.height - kAxisHeight)));
    const sel = s.selected.value;
    return {
      trace: source.trace,
      layout,
      scale: this.scale,
      height: this.height,
      scrollY: this.scrollY,
      palette: s.palette.value,
      colors: this.side === 'a' ? s.colors.value : s.colorsB.value,
      matches: this.side === 'a' ? s.matches.value : s.matchesB.value,
      matchingInstants: this.side === 'a' ? s.matchingInstants.value : s.matchingInstantsB.value,
      line: this.side === 'a' ? s.line.value : s.lineB.value,
      selected: sel?.side === this.side ? sel : null,
      hover: this.hover,
      problems: Float64Array.from(source.problems.filter((p) => p.severity !== 'info').map((p) => p.t)),
      measure: this.measured,
      cursor: TimelineView.cursor + (this.side === 'b' ? s.offsetB.value : 0),
      title: `${s.b.value ? `${this.side.toUpperCase()}: ` : ''}${source.trace.header.scenario || source.trace.name}`,
    };
  }

  request(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.paint());
  }

  /** `still`: without what follows the pointer. */
  paint(still = false): void {
    if (!still) this.frame = 0;
    const begun = performance.now();
    const ratio = window.devicePixelRatio || 1;
    const w = Math.round(this.width * ratio);
    const h = Math.round(this.height * ratio);
    if (this.canvas.width !== w || this.canvas.height !== h) {
      this.canvas.width = w;
      this.canvas.height = h;
    }
    const wanted = revealLane.value;
    if (wanted.nonce !== this.revealed && this.source) {
      this.revealed = wanted.nonce;
      this.reveal(wanted.lane);
    }
    const scene = this.scene();
    const context = this.canvas.getContext('2d')!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (scene) drawTimeline(context, still ? { ...scene, hover: -1, cursor: NaN } : scene);
    this.drawTimes.push(performance.now() - begun);
    if (this.drawTimes.length > 2000) this.drawTimes.shift();
  }

  private reveal(lane: number): void {
    const strip = this.layout.strips.find((e) => !isFold(e) && e.lane === lane) ?? this.unfold(lane);
    if (!strip) return;
    const room = this.height - kAxisHeight;
    if (strip.y < this.scrollY || strip.y + strip.h > this.scrollY + room) this.scrollY = strip.y - room / 2;
  }

  /** Opens the folds that hide a lane; its strip, or undefined if it is hidden otherwise. */
  private unfold(lane: number) {
    const t = this.source!.trace;
    const l = t.lanes[lane];
    const folds = new Set(s.toggledFolds.value);
    const opened = [`${l.host}`, `${l.host}/${componentOf(l, t.header.hosts)}`].filter((key) => folds.delete(key));
    if (opened.length === 0) return undefined;
    s.toggledFolds.value = folds;
    return this.layout.strips.find((e) => !isFold(e) && e.lane === lane);
  }

  /** Timelines that are compared scroll together. */
  scrollBy(dy: number): void {
    for (const view of instances.values()) {
      view.scrollY += dy;
      view.request();
    }
  }
  zoomAt(x: number, factor: number): void {
    const t = this.scale.t(Math.max(x, kLabelWidth)) - (this.side === 'b' ? s.offsetB.value : 0);
    setView(zoom(s.view.value, factor, t));
  }
  panBy(pixels: number): void {
    setView(pan(s.view.value, pixels * this.scale.perPixel));
  }

  click(x: number, y: number): void {
    const hit = hitTest(this, x, y);
    if (!hit) {
      s.selected.value = null;
      return;
    }
    if (hit.record === 'fold') toggleFold(hit.fold!);
    else if (hit.record === 'span') selectSpan(hit.index, this.side);
    else if (hit.record === 'instant' || hit.record === 'packet') selectMark(hit.record, hit.index, this.side);
  }
  doubleClick(x: number, y: number): void {
    const hit = hitTest(this, x, y);
    const t = this.source?.trace;
    if (hit?.record === 'span' && t && t.spans.msg[hit.index] > 0) selectMessage(t.spans.msg[hit.index], true);
  }

  point(x: number, y: number): void {
    const hit = x >= 0 ? hitTest(this, x, y) : null;
    this.hover = hit?.record === 'span' ? hit.index : -1;
    TimelineView.cursor = x >= kLabelWidth ? this.scale.t(x) - (this.side === 'b' ? s.offsetB.value : 0) : NaN;
    for (const view of instances.values()) view.request();
    this.canvas.style.cursor = hit?.record === 'fold' ? 'pointer' : '';
    this.tip.hidden = !hit;
    if (!hit) return;
    this.tip.textContent = hit.text;
    const left = Math.min(x + 14, this.width - this.tip.offsetWidth - 6);
    this.tip.style.transform = `translate(${Math.max(left, 4)}px, ${Math.min(y + 16, this.height - this.tip.offsetHeight - 4)}px)`;
  }

  svg(): string {
    const scene = this.scene();
    const p = new SvgPainter(this.width, this.height);
    if (scene) drawTimeline(p, { ...scene, hover: -1, cursor: NaN });
    return p.document(`Timeline of ${this.source?.trace.name ?? ''}`);
  }
}

export function Timeline({ side }: { side: Side }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const timeline = new TimelineView(canvas.current!, tip.current!, side);
    instances.set(side, timeline);
    const detach = attachPointer(timeline);
    const stop = effect(() => {
      // Everything that the picture depends on.
      void [
        s.a.value,
        s.b.value,
        s.view.value,
        s.selected.value,
        s.message.value,
        s.matches.value,
        s.matchesB.value,
        s.palette.value,
        s.groups.value,
        s.groupsB.value,
        s.toggledFolds.value,
        s.compactLanes.value,
        s.range.value,
        s.offsetB.value,
      ];
      timeline.request();
    });
    const resized = new ResizeObserver(() => timeline.request());
    resized.observe(canvas.current!);
    return () => {
      stop();
      detach();
      resized.disconnect();
      instances.delete(side);
    };
  }, [side]);
  return (
    <div class="timeline" data-side={side}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={`Timeline${side === 'b' ? ' of the second trace' : ''}: W and S zoom, A and D pan, up and down scroll lanes, n and p step through messages, brackets step through the spans of a lane`}
      />
      <div ref={tip} class="tip" hidden />
    </div>
  );
}
