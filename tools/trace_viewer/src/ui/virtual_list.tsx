// SPDX-License-Identifier: Apache-2.0
// A table body that only holds the rows in view, for tables of any length. Rows have one height; the header is the caller's.
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

export interface ListProps {
  count: number;
  rowHeight: number;
  label: string;
  /** Row to keep in view, -1 for none. */
  current: number;
  row: (index: number) => ComponentChildren;
  /** Enter or an arrow key moved to this row. */
  onPick: (index: number) => void;
  header?: ComponentChildren;
  class?: string;
}

const kSpare = 8;

export function VirtualList(props: ListProps) {
  const box = useRef<HTMLDivElement>(null);
  const [scroll, setScroll] = useState(0);
  const [height, setHeight] = useState(300);
  useLayoutEffect(() => {
    const element = box.current!;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const element = box.current!;
    if (props.current < 0) return;
    const top = props.current * props.rowHeight;
    const head = (element.querySelector('.list-head') as HTMLElement | null)?.offsetHeight ?? 0;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + props.rowHeight > element.scrollTop + element.clientHeight - head) {
      element.scrollTop = top + props.rowHeight - element.clientHeight + head;
    }
  }, [props.current, props.count]);
  const first = Math.max(0, Math.floor(scroll / props.rowHeight) - kSpare);
  const last = Math.min(props.count, Math.ceil((scroll + height) / props.rowHeight) + kSpare);
  const rows: ComponentChildren[] = [];
  for (let i = first; i < last; ++i) rows.push(props.row(i));
  const key = (e: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(height / props.rowHeight) - 2);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[e.key];
    if (step === undefined || props.count === 0) return;
    e.preventDefault();
    props.onPick(Math.min(Math.max((props.current < 0 ? -1 : props.current) + step, 0), props.count - 1));
  };
  return (
    <div
      ref={box}
      class={`list ${props.class ?? ''}`}
      tabIndex={0}
      role="grid"
      aria-label={props.label}
      aria-rowcount={props.count}
      onScroll={(e) => setScroll((e.target as HTMLElement).scrollTop)}
      onKeyDown={key}
    >
      {props.header}
      <div style={{ height: `${props.count * props.rowHeight}px`, position: 'relative' }} role="rowgroup">
        <div style={{ transform: `translateY(${first * props.rowHeight}px)` }}>{rows}</div>
      </div>
    </div>
  );
}
