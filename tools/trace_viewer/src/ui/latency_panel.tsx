// SPDX-License-Identifier: Apache-2.0
// Latency of the messages that the search admits: histogram and distribution function. Dragging over either filters the table of
// messages to that range. A second trace is drawn beside the first.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { matchMessages } from '../model/search';
import type { Histogram } from '../model/stats';
import { cdf, histogram, mean, percentile, sorted } from '../model/stats';
import { formatNs } from '../model/time';
import type { Palette } from '../view/colors';
import * as s from './state';

const kBins = 60;
const kB = '#e08a00';

export function LatencyPanel() {
  const [log, setLog] = useState(false);
  const [most, setMost] = useState(false);
  const l = s.a.value;
  const parsed = s.parsed.value;
  const a = useMemo(
    () => (l ? sorted(Array.from(matchMessages(l.trace, parsed), (r) => l.trace.messages.total[r])) : new Float64Array(0)),
    [l, parsed],
  );
  const lb = s.b.value;
  const b = useMemo(
    () => (lb ? sorted(Array.from(matchMessages(lb.trace, parsed), (r) => lb.trace.messages.total[r])) : null),
    [lb, parsed],
  );
  if (!l) return null;
  if (a.length === 0) return <p class="hint pad">No finished message matches.</p>;
  return (
    <div class="fill latency">
      <div class="quantiles">
        <Quantiles a={a} b={b} />
        <div class="bar">
          <label>
            <input type="checkbox" checked={log} onChange={() => setLog(!log)} /> logarithmic
          </label>
          <label title="leaves the slowest one per cent out of the charts">
            <input type="checkbox" checked={most} onChange={() => setMost(!most)} /> up to p99
          </label>
          {s.latencyRange.value && <button onClick={() => (s.latencyRange.value = null)}>clear range</button>}
        </div>
        <p class="hint">Drag over a chart to show only those messages in the table.</p>
      </div>
      <Chart kind="histogram" a={a} b={b} log={log} most={most} palette={s.palette.value} />
      <Chart kind="cdf" a={a} b={b} log={log} most={most} palette={s.palette.value} />
    </div>
  );
}

function Quantiles({ a, b }: { a: Float64Array; b: Float64Array | null }) {
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
        Latency in ns of {a.length.toLocaleString('en')} messages{b ? ` (B: ${b.length.toLocaleString('en')})` : ''}
      </caption>
      <tbody>
        {rows.map(([name, f]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td class="num">{formatNs(f(a))}</td>
            {b && <td class="num b">{formatNs(f(b))}</td>}
          </tr>
        ))}
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
}

function Chart(props: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current!;
    const plot = new uPlot(options(props, element), data(props), element);
    const observer = new ResizeObserver(() => {
      const size = { width: element.clientWidth, height: plotHeight(element) };
      // Setting a size ends a drag under way, so only a change counts.
      if (size.width !== plot.width || size.height !== plot.height) plot.setSize(size);
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [props.kind, props.a, props.b, props.log, props.most, props.palette]);
  const title = props.kind === 'histogram' ? 'Latency histogram' : 'Latency distribution function';
  return <div class="chart" ref={box} role="img" aria-label={`${title}; its quantiles are in the table beside it`} />;
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

function options(props: ChartProps, element: HTMLElement): uPlot.Options {
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
    title: kind === 'histogram' ? 'messages per bin over latency, ns' : 'share of messages up to latency, ns',
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
      setSelect: [
        (u) => {
          if (u.select.width < 2) return;
          const lo = u.posToVal(u.select.left, 'x') * 1000;
          const hi = u.posToVal(u.select.left + u.select.width, 'x') * 1000;
          s.latencyRange.value = [Math.floor(lo), Math.ceil(hi)];
        },
      ],
    },
  };
}
