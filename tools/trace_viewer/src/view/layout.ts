// SPDX-License-Identifier: Apache-2.0
// Where lanes lie on the timeline: heights and offsets of every strip, from top to bottom, without the scroll position. Hosts and
// their components fold; a component with many counters of a kind shows those that move most and keeps the others behind a strip.
import type { LaneGroup } from '../model/lanes';
import { componentOf, shortPath } from '../model/lanes';
import type { Trace } from '../model/types';

export const kAxisHeight = 26;
export const kLabelWidth = 196;
const kGroupHeight = 20;
const kComponentHeight = 15;
const kFoldedHeight = 17;
const kCompactRow = 12;
const kMarkHeight = 15;
const kCounterHeight = 26;
const kGap = 4;
/** Of one point in one component, so many counters are shown without being asked for. */
export const kMostCounters = 3;

interface Place {
  y: number;
  h: number;
}
/** A strip that folds what follows it; `key` names it among the toggled ones. */
interface Fold extends Place {
  key: string;
  folded: boolean;
  name: string;
}
export type LaneStrip =
  /** Span rows of a lane, each rowHeight high and `step` under the one before it: 0 when they lie over each other. */
  | (Place & { kind: 'spans'; lane: number; label: string; firstRow: number; rows: number; rowHeight: number; step: number })
  /** Instants and packets of a lane without spans. */
  | (Place & { kind: 'marks'; lane: number; label: string })
  | (Place & { kind: 'counter' | 'state'; lane: number; label: string; series: number });
export type Strip =
  | LaneStrip
  /** A host. */
  | (Fold & { kind: 'group' })
  /** A component of a host; folded, it shows all rows of its lanes in one. */
  | (Fold & { kind: 'component'; rows: number[] })
  /** Stands for the counters that are not shown. */
  | (Fold & { kind: 'more' });

export interface Layout {
  strips: Strip[];
  height: number;
  /** Middle and height of each row, for arrows and selections; NaN when the lane is hidden. */
  rowY: Float64Array;
  rowH: Float64Array;
}

export interface LayoutOptions {
  /** Keys of the folds that are not as they are by default: hosts and components are open, spare counters folded. */
  toggled?: ReadonlySet<string>;
  /** One row per lane and nothing else, so that a whole life-line fits the screen. */
  compact?: boolean;
}

export function layOut(trace: Trace, groups: LaneGroup[], { toggled = new Set(), compact = false }: LayoutOptions = {}): Layout {
  return new Builder(trace, toggled, compact).build(groups);
}

function rowHeight(rows: number): number {
  return rows === 1 ? 17 : rows === 2 ? 12 : rows <= 4 ? 9 : rows <= 6 ? 7 : 6;
}

class Builder {
  private readonly strips: Strip[] = [];
  private y = 0;
  private readonly rowsOf = new Map<number, { first: number; n: number }>();
  private readonly counters: Map<number, number[]>;
  private readonly states: Map<number, number[]>;
  private readonly rowY: Float64Array;
  private readonly rowH: Float64Array;

  constructor(
    private readonly trace: Trace,
    private readonly toggled: ReadonlySet<string>,
    private readonly compact: boolean,
  ) {
    for (let r = 0; r < trace.rows.n; ++r) {
      const e = this.rowsOf.get(trace.rows.lane[r]);
      if (e) e.n++;
      else this.rowsOf.set(trace.rows.lane[r], { first: r, n: 1 });
    }
    this.counters = seriesByLane(trace.counters.series);
    this.states = seriesByLane(trace.states.series);
    this.rowY = new Float64Array(trace.rows.n).fill(NaN);
    this.rowH = new Float64Array(trace.rows.n).fill(NaN);
  }

  build(groups: LaneGroup[]): Layout {
    for (const g of groups) {
      const folded = this.toggled.has(`${g.host}`);
      this.strips.push({ kind: 'group', y: this.y, h: kGroupHeight, name: g.name, key: `${g.host}`, folded });
      if (folded) this.stack(g.lanes, this.y, kGroupHeight);
      this.y += kGroupHeight + 2;
      if (folded) continue;
      for (const [name, lanes] of components(this.trace, g.lanes)) this.component(`${g.host}/${name}`, name, lanes, g.host >= 0);
      this.y += 4;
    }
    return { strips: this.strips, height: this.y, rowY: this.rowY, rowH: this.rowH };
  }

  private component(key: string, name: string, lanes: number[], named: boolean): void {
    const headed = named && lanes.length > 1 && !this.compact;
    const folded = headed && this.toggled.has(key);
    if (headed) {
      const h = folded ? kFoldedHeight : kComponentHeight;
      const rows = folded ? lanes.flatMap((l) => this.rows(l)) : [];
      this.strips.push({ kind: 'component', y: this.y, h, name, key, folded, rows });
      if (folded) this.stack(lanes, this.y, h);
      this.y += h + (folded ? kGap : 2);
    }
    if (folded) return;
    const more = `${key}/more`;
    const spare = this.compact ? new Set<number>() : this.spare(lanes);
    const shown = this.toggled.has(more);
    for (const lane of lanes) {
      const path = shortPath(this.trace.lanes[lane], this.trace.header.hosts);
      const label = headed && path.startsWith(`${name}.`) ? path.slice(name.length + 1) : path;
      this.lane(lane, label, shown ? null : spare);
    }
    if (spare.size === 0) return;
    const text = shown ? 'fewer counters' : `${spare.size} more counter${spare.size > 1 ? 's' : ''}`;
    this.strips.push({ kind: 'more', y: this.y, h: kComponentHeight, name: text, key: more, folded: !shown });
    this.y += kComponentHeight + kGap;
  }

  /** Counters to keep back: those that never change, and all but the liveliest of each point. */
  private spare(lanes: number[]): Set<number> {
    const { series } = this.trace.counters;
    const byPoint = new Map<number, number[]>();
    for (const lane of lanes) {
      for (const s of this.counters.get(lane) ?? []) byPoint.set(series[s].point, [...(byPoint.get(series[s].point) ?? []), s]);
    }
    const spare = new Set<number>();
    const still = (s: number) => series[s].min === series[s].max;
    for (const list of byPoint.values()) {
      const lively = list
        .slice()
        .sort((a, b) => Number(still(a)) - Number(still(b)) || size(series[b]) - size(series[a]) || a - b);
      lively.forEach((s, i) => {
        if (i >= kMostCounters || (still(s) && (i > 0 || series[s].max === 0))) spare.add(s);
      });
    }
    return spare;
  }

  private lane(lane: number, label: string, spare: Set<number> | null): void {
    const rows = this.rowsOf.get(lane);
    const marks = hasMarks(this.trace, lane);
    if (rows) this.spans(lane, label, rows);
    else if (marks) {
      this.strips.push({ kind: 'marks', y: this.y, h: kMarkHeight, lane, label });
      this.y += kMarkHeight + kGap;
    }
    if (this.compact) return;
    // A lane that is one value is called as the lane is.
    const { kind } = this.trace.lanes[lane];
    const alone =
      (kind === 'counter' || kind === 'state') &&
      (this.states.get(lane)?.length ?? 0) + (this.counters.get(lane)?.length ?? 0) === 1;
    const under = rows !== undefined || marks;
    const name = (point: number) => (alone ? label : valueLabel(this.trace, label, point, under));
    const { states, counters } = this.trace;
    for (const series of this.states.get(lane) ?? []) {
      const text = name(states.series[series].point);
      this.strips.push({ kind: 'state', y: this.y, h: kMarkHeight, lane, label: text, series });
      this.y += kMarkHeight + kGap;
    }
    for (const series of this.counters.get(lane) ?? []) {
      if (spare?.has(series)) continue;
      const text = name(counters.series[series].point);
      this.strips.push({ kind: 'counter', y: this.y, h: kCounterHeight, lane, label: text, series });
      this.y += kCounterHeight + kGap;
    }
  }

  private spans(lane: number, label: string, rows: { first: number; n: number }): void {
    const height = this.compact ? kCompactRow : rowHeight(rows.n);
    const step = this.compact ? 0 : height;
    const h = height + (rows.n - 1) * step;
    const { y } = this;
    this.strips.push({ kind: 'spans', y, h, lane, label, firstRow: rows.first, rows: rows.n, rowHeight: height, step });
    for (let k = 0; k < rows.n; ++k) {
      this.rowY[rows.first + k] = y + k * step + height / 2;
      this.rowH[rows.first + k] = height;
    }
    this.y += h + (this.compact ? 2 : kGap);
  }

  private rows(lane: number): number[] {
    const e = this.rowsOf.get(lane);
    return e ? Array.from({ length: e.n }, (_, i) => e.first + i) : [];
  }
  /** All rows of the lanes in one place: that of the strip that folds them. */
  private stack(lanes: number[], y: number, h: number): void {
    for (const row of lanes.flatMap((l) => this.rows(l))) {
      this.rowY[row] = y + h / 2;
      this.rowH[row] = h;
    }
  }
}

/** Lanes by component, in their order. */
export function components(trace: Trace, lanes: number[]): Map<string, number[]> {
  const out = new Map<string, number[]>();
  for (const lane of lanes) {
    const name = componentOf(trace.lanes[lane], trace.header.hosts);
    const list = out.get(name);
    if (list) list.push(lane);
    else out.set(name, [lane]);
  }
  return out;
}

function size(s: { from: number; to: number }): number {
  return s.to - s.from;
}

/** "· store_buffer" under a lane with other records, the lane's own name otherwise. */
function valueLabel(trace: Trace, lane: string, point: number, under: boolean): string {
  const p = trace.points[point];
  const name = p.name.slice(p.name.indexOf('.') + 1);
  return under ? `· ${name}` : name && !lane.endsWith(name) ? `${lane} ${name}` : lane;
}

function hasMarks(trace: Trace, lane: number): boolean {
  return trace.instantOffset[lane + 1] > trace.instantOffset[lane] || trace.packetOffset[lane + 1] > trace.packetOffset[lane];
}

function seriesByLane(series: Trace['counters']['series']): Map<number, number[]> {
  const out = new Map<number, number[]>();
  series.forEach((s, i) => out.set(s.lane, [...(out.get(s.lane) ?? []), i]));
  return out;
}

/** Row of span i. */
export function rowOfSpan(trace: Trace, i: number): number {
  const { offset } = trace.rows;
  let lo = 0;
  let hi = trace.rows.n - 1;
  while (lo < hi) {
    const mid = (lo + hi + 1) >>> 1;
    if (offset[mid] <= i) lo = mid;
    else hi = mid - 1;
  }
  return lo;
}

export function isFold(strip: Strip): strip is Exclude<Strip, LaneStrip> {
  return strip.kind === 'group' || strip.kind === 'component' || strip.kind === 'more';
}

export function stripAt(layout: Layout, y: number): Strip | null {
  return layout.strips.find((s) => y >= s.y && y < s.y + s.h) ?? null;
}
