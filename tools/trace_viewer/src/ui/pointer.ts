// SPDX-License-Identifier: Apache-2.0
// Mouse, wheel and touch on a timeline: drag pans, wheel zooms about the pointer (over the labels, or with shift, it scrolls), shift
// and drag measures, two fingers pinch.
import { kLabelWidth } from '../view/layout';
import type { TimelineView } from './timeline';
import * as s from './state';

interface Touch {
  x: number;
  y: number;
}

export function attachPointer(view: TimelineView): () => void {
  const { canvas } = view;
  const pointers = new Map<number, Touch>();
  let moved = 0;
  let pinch = 0;
  let measuring = false;
  let measureFrom = 0;
  /** Time of trace a. */
  const timeAt = (x: number) => view.scale.t(x) - (view.side === 'b' ? s.offsetB.value : 0);

  const place = (e: PointerEvent | WheelEvent | MouseEvent): Touch => {
    const r = canvas.getBoundingClientRect();
    return { x: e.clientX - r.left, y: e.clientY - r.top };
  };
  const spread = () => {
    const [p, q] = [...pointers.values()];
    return Math.hypot(p.x - q.x, p.y - q.y);
  };

  const down = (e: PointerEvent) => {
    if (e.button !== 0) return;
    canvas.setPointerCapture(e.pointerId);
    pointers.set(e.pointerId, place(e));
    moved = 0;
    measuring = e.shiftKey && place(e).x > kLabelWidth;
    measureFrom = timeAt(place(e).x);
    if (pointers.size === 2) pinch = spread();
    view.request();
  };
  const move = (e: PointerEvent) => {
    const now = place(e);
    const before = pointers.get(e.pointerId);
    if (!before) {
      view.point(now.x, now.y);
      return;
    }
    if (measuring) {
      const t = timeAt(now.x);
      const length = Math.abs(t - measureFrom);
      s.range.value = { from: Math.min(t, measureFrom), to: Math.max(t, measureFrom) };
      view.tip.hidden = false;
      view.tip.textContent = `Δ ${(length / 1000).toFixed(3)} ns\nz: zoom to it`;
      view.tip.style.transform = `translate(${Math.min(now.x + 14, view.width - 120)}px, ${now.y}px)`;
      moved += 10;
      view.request();
    } else if (pointers.size === 2) {
      pointers.set(e.pointerId, now);
      const [p, q] = [...pointers.values()];
      const wide = spread();
      if (pinch > 0 && wide > 0) view.zoomAt((p.x + q.x) / 2, pinch / wide);
      pinch = wide;
      moved += 10;
    } else {
      const dx = now.x - before.x;
      const dy = now.y - before.y;
      moved += Math.abs(dx) + Math.abs(dy);
      if (moved > 4) {
        view.tip.hidden = true;
        view.panBy(-dx);
        view.scrollBy(-dy);
      }
    }
    pointers.set(e.pointerId, now);
  };
  const up = (e: PointerEvent) => {
    if (!pointers.delete(e.pointerId)) return;
    pinch = 0;
    if (measuring && moved > 4) s.side.value = 'range';
    if (moved <= 4) {
      s.range.value = null;
      const { x, y } = place(e);
      view.click(x, y);
    }
    measuring = false;
    view.request();
  };
  const leave = () => view.point(-1, -1);
  const wheel = (e: WheelEvent) => {
    e.preventDefault();
    const { x } = place(e);
    const lines = e.deltaMode === 1 ? 24 : 1;
    if (x < kLabelWidth || e.shiftKey) view.scrollBy((e.deltaY || e.deltaX) * lines);
    else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) view.panBy(e.deltaX * lines);
    else view.zoomAt(x, Math.exp(Math.max(-240, Math.min(240, e.deltaY * lines)) * 0.0022));
  };
  const double = (e: MouseEvent) => {
    const { x, y } = place(e);
    view.doubleClick(x, y);
  };

  canvas.addEventListener('pointerdown', down);
  canvas.addEventListener('pointermove', move);
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('pointerleave', leave);
  canvas.addEventListener('wheel', wheel, { passive: false });
  canvas.addEventListener('dblclick', double);
  const stop = s.message.subscribe(() => view.request());
  return () => {
    stop();
    canvas.removeEventListener('pointerdown', down);
    canvas.removeEventListener('pointermove', move);
    canvas.removeEventListener('pointerup', up);
    canvas.removeEventListener('pointercancel', up);
    canvas.removeEventListener('pointerleave', leave);
    canvas.removeEventListener('wheel', wheel);
    canvas.removeEventListener('dblclick', double);
  };
}
