// SPDX-License-Identifier: Apache-2.0
// Latency of the messages that the search admits: histogram and distribution function. Dragging over either filters the table of
// messages to that range. A second trace is drawn beside the first.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { Query } from '../model/search';
import { matchMessages } from '../model/search';
import type { Histogram } from '../model/stats';
import { cdf, histogram, mean, percentile, sorted } from '../model/stats';
import { formatNs } from '../model/time';
import type { Trace } from '../model/types';
import { Status } from '../model/types';
import type { Palette } from '../view/colors';
import type { LatencyRange } from './state';
import * as s from './state';

const kBins = 60;
const kB = '#e08a00';

export function LatencyPanel() {
  const [log, setLog] = useState(false);
  const [most, setMost] = useState(false);
  const l = s.a.value;
  const parsed = s.parsed.value;
  const lb = s.b.value;
  const stage = s.quantity.value;
  const a = useMemo(() => (l ? valuesOf(l.trace, parsed, stage) : new Float64Array(0)), [l, parsed, stage]);
  const b = useMemo(() => (lb ? valuesOf(lb.trace, parsed, stage) : null), [lb, parsed, stage]);
  if (!l) return null;
  const stages = l.trace.header.stages.filter((name) => (s.timesOf(l.trace, name) ?? []).some((x) => x > 0));
  const own = s.messageRow.value >= 0 ? (s.timesOf(l.trace, stage)?.[s.messageRow.value] ?? NaN) : NaN;
  const range = s.latencyRange.value;
  const chart = { a, b, log, most, palette: s.palette.value, stage, own, range: range?.stage === stage ? range : null };
  if (a.length === 0) return <p class="hint pad">No delivered message matches.</p>;
  return (
    <div class="fill latency">
      <div class="quantiles">
        <label class="bar">
          time of{' '}
          <select id="quantity" value={stage} onChange={(e) => (s.quantity.value = (e.target as HTMLSelectElement).value)}>
            <option value="">the whole message</option>
            {stages.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <Quantiles a={a} b={b} own={own} />
        <div class="bar">
          <label>
            <input type="checkbox" checked={log} onChange={() => setLog(!log)} /> logarithmic
          </label>
          <label title="leaves the slowest one per cent out of the charts">
            <input type="checkbox" checked={most} onChange={() => setMost(!most)} /> up to p99
          </label>
          {s.latencyRange.value && <button onClick={() => (s.latencyRange.value = null)}>clear range</button>}
        </div>
        <p class="hint">Drag over a chart: the table shows only those messages.</p>
      </div>
      <Chart kind="histogram" {...chart} />
      <Chart kind="cdf" {...chart} />
    </div>
  );
}

function valuesOf(t: Trace, query: Query, stage: string): Float64Array {
  const times = s.timesOf(t, stage);
  const finished = matchMessages(t, query).filter((r) => t.messages.status[r] === Status.ok);
  return times ? sorted(Array.from(finished, (r) => times[r])) : new Float64Array(0);
}

function Quantiles({ a, b, own }: { a: Float64Array; b: Float64Array | null; own: number }) {
  const rows: [string, (v: Float64Array) => number][] = [
    ['min', (v) => percentile(v, 0)],
    ['mean', mean],
    ['p50', (v) => percentile(v, 0.5)],
    ['p90', (v) => percentile(v, 0.9)],
    ['p99', (v) => percentile(v, 0.99)],
    ['p99.9', (v) => percentile(v, 0.999)],
    ['max', (v) => percentile(v, 1)],
  ];
  return (
    <table class="plain">
      <caption>
        ns, of {a.length.toLocaleString('en')} messages{b ? ` (B: ${b.length.toLocaleString('en')})` : ''}
      </caption>
      <tbody>
        {rows.map(([name, f]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td class="num">{formatNs(f(a))}</td>
            {b && <td class="num b">{formatNs(f(b))}</td>}
          </tr>
        ))}
        {!Number.isNaN(own) && (
          <tr class="own">
            <th scope="row">WR {s.message.value}</th>
            <td class="num">{formatNs(own)}</td>
            {b && <td />}
          </tr>
        )}
      </tbody>
    </table>
  );
}

interface ChartProps {
  kind: 'histogram' | 'cdf';
  a: Float64Array;
  b: Float64Array | null;
  log: boolean;
  /** Up to the 99th percentile only. */
  most: boolean;
  palette: Palette;
  stage: string;
  /** Of the selected message, NaN if there is none. */
  own: number;
  range: LatencyRange | null;
}

function Chart(props: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const marks = useRef(props);
  marks.current = props;
  const [under, setUnder] = useState('');
  useEffect(() => {
    const element = box.current!;
    const made = new uPlot(options(props, element, marks, setUnder), data(props), element);
    plot.current = made;
    const observer = new ResizeObserver(() => {
      const size = { width: element.clientWidth, height: plotHeight(element) };
      // Setting a size ends a drag under way, so only a change counts.
      if (size.width !== made.width || size.height !== made.height) made.setSize(size);
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current = null;
      made.destroy();
    };
  }, [props.kind, props.a, props.b, props.log, props.most, props.palette, props.stage]);
  useEffect(() => plot.current?.redraw(false), [props.own, props.range]);
  const title = props.kind === 'histogram' ? 'Latency histogram' : 'Latency distribution function';
  return (
    <div class="chart" ref={box} role="img" aria-label={`${title}; its quantiles are in the table beside it`}>
      <span class="under">{under}</span>
    </div>
  );
}

/** The title stands above what uPlot calls the height. */
function plotHeight(element: HTMLElement): number {
  return Math.max(90, element.clientHeight - 28);
}

/** Both traces over one list of x: histogram edges as steps, or the distribution functions. */
function data({ kind, a, b, log, most }: ChartProps): uPlot.AlignedData {
  const limit = most ? Math.max(percentile(a, 0.99), b ? percentile(b, 0.99) : 0) : Infinity;
  const series = [a, ...(b ? [b] : [])].map((v) => (most ? v.filter((x) => x <= limit) : v));
  if (kind === 'histogram') {
    const all = Float64Array.from(series.flatMap((v) => Array.from(v))).sort();
    const shared = histogram(all, kBins, log);
    const columns = series.map((v) => countIn(v, shared));
    return [Array.from(shared.edges, (x) => x / 1000), ...columns.map((c) => [...Array.from(c), 0])] as uPlot.AlignedData;
  }
  const curves = series.map((v) => cdf(v, 2000));
  // Shares are of all messages, of those beyond the limit too.
  const part = series.map((v, i) => v.length / Math.max(1, (i === 0 ? a : b!).length));
  const tables = curves.map((c, i): uPlot.AlignedData => [
    [c.x[0] / 1000, ...c.x.map((x) => x / 1000)],
    [0, ...c.share.map((y) => y * part[i])],
  ]);
  // Equal x values would confuse the join: each curve keeps its last share per x.
  return uPlot.join(tables.map(distinct));
}
function distinct(table: uPlot.AlignedData): uPlot.AlignedData {
  const x: number[] = [];
  const y: (number | null | undefined)[] = [];
  for (let i = 0; i < table[0].length; ++i) {
    if (x.length > 0 && x[x.length - 1] === table[0][i]) y[y.length - 1] = table[1][i];
    else {
      x.push(table[0][i]);
      y.push(table[1][i]);
    }
  }
  return [x, y];
}
function countIn(v: Float64Array, h: Histogram): Uint32Array {
  const counts = new Uint32Array(h.counts.length);
  let bin = 0;
  for (const x of v) {
    while (bin < counts.length - 1 && x >= h.edges[bin + 1]) ++bin;
    counts[bin]++;
  }
  return counts;
}

/** Draws the selected message and the range that filters the table. */
function drawMarks(u: uPlot, { own, range, palette }: ChartProps): void {
  const { left, top, width, height } = u.bbox;
  const x = (ps: number) => Math.min(Math.max(u.valToPos(ps / 1000, 'x', true), left), left + width);
  u.ctx.save();
  u.ctx.fillStyle = palette.select;
  if (range) {
    u.ctx.globalAlpha = 0.15;
    u.ctx.fillRect(x(range.from), top, Math.max(x(range.to) - x(range.from), 1), height);
  }
  u.ctx.globalAlpha = 1;
  if (!Number.isNaN(own)) u.ctx.fillRect(x(own) - 1, top, 2, height);
  u.ctx.restore();
}

/** What the chart says at its point i. */
function textAt(u: uPlot, i: number, kind: ChartProps['kind']): string {
  const x = (k: number) => formatNs(Math.round(u.data[0][k] * 1000));
  const y = u.data[1][i] ?? 0;
  if (kind === 'cdf') return `${(100 * y).toFixed(1)} % up to ${x(i)} ns`;
  return i + 1 < u.data[0].length ? `${y} messages of ${x(i)} … ${x(i + 1)} ns` : '';
}

function options(
  props: ChartProps,
  element: HTMLElement,
  marks: { current: ChartProps },
  say: (text: string) => void,
): uPlot.Options {
  const { kind, log, palette } = props;
  const stepped = uPlot.paths.stepped!({ align: 1 });
  const axis = {
    stroke: palette.faint,
    grid: { stroke: palette.grid, width: 1 },
    ticks: { stroke: palette.grid, width: 1 },
    font: '11px system-ui',
  };
  const one = (label: string, color: string, fill: string): uPlot.Series => ({
    label,
    stroke: color,
    width: 1.5,
    paths: stepped,
    points: { show: false },
    spanGaps: true,
    ...(kind === 'histogram' ? { fill } : {}),
  });
  return {
    width: element.clientWidth || 300,
    height: plotHeight(element),
    title:
      kind === 'histogram'
        ? `messages per bin over ${props.stage || 'latency'}, ns`
        : `share of messages up to ${props.stage || 'latency'}, ns`,
    legend: { show: false },
    cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false } },
    scales: {
      x: { time: false, ...(log ? { distr: 3, log: 10 } : {}) },
      y: kind === 'cdf' ? { range: [0, 1] } : { range: (_u, _lo, hi) => [0, Math.max(1, hi * 1.05)] },
    },
    axes: [
      { ...axis, size: 30, ...(log ? {} : { values: (_u: uPlot, ts: number[]) => ts.map((v) => v.toLocaleString('en')) }) },
      { ...axis, size: 46 },
    ],
    series: [
      {},
      one('A', palette.counterLine, palette.dark ? 'rgba(120,174,214,0.35)' : 'rgba(69,116,156,0.35)'),
      ...(props.b ? [one('B', kB, 'rgba(224,138,0,0.25)')] : []),
    ],
    hooks: {
      draw: [(u) => drawMarks(u, marks.current)],
      setCursor: [
        (u) => say(typeof u.cursor.idx === 'number' && (u.cursor.left ?? -1) >= 0 ? textAt(u, u.cursor.idx, kind) : ''),
      ],
      setSelect: [
        (u) => {
          if (u.select.width < 2) return;
          const lo = u.posToVal(u.select.left, 'x') * 1000;
          const hi = u.posToVal(u.select.left + u.select.width, 'x') * 1000;
          s.latencyRange.value = { stage: props.stage, from: Math.floor(lo), to: Math.ceil(hi) };
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    },
  };
}
