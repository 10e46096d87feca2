// SPDX-License-Identifier: Apache-2.0
// Times as text and back. All times are picoseconds.

const kUnits: [string, number][] = [
  ['s', 1e12],
  ['ms', 1e9],
  ['us', 1e6],
  ['ns', 1e3],
  ['ps', 1],
];

/** A duration in its natural unit with all its picoseconds: "2.1015 us". */
export function formatDuration(ps: number): string {
  if (!Number.isFinite(ps)) return '–';
  if (ps === 0) return '0 ns';
  const sign = ps < 0 ? '−' : '';
  const p = Math.abs(ps);
  const [unit, factor] = kUnits.find(([, f]) => p >= f && f > 1) ?? (p < 1000 ? (['ps', 1] as const) : (['ns', 1e3] as const));
  return `${sign}${exact(p, factor)} ${display(unit)}`;
}

/** Nanoseconds with three decimals and thousands separators, for tables whose columns have to line up. */
export function formatNs(ps: number): string {
  if (!Number.isFinite(ps)) return '–';
  const sign = ps < 0 ? '−' : '';
  const p = Math.abs(Math.round(ps));
  const whole = Math.floor(p / 1000);
  return `${sign}${group(String(whole))}.${String(p % 1000).padStart(3, '0')}`;
}

/** Whole picoseconds with thousands separators. */
export function formatPs(ps: number): string {
  if (!Number.isFinite(ps)) return '–';
  return (ps < 0 ? '−' : '') + group(String(Math.abs(Math.round(ps))));
}

/** A time rounded to what a step of `step` ps can tell apart. */
export function formatTick(ps: number, step: number): string {
  const [unit, factor] = kUnits.find(([, f]) => Math.abs(ps) >= f) ?? kUnits[3];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / factor) - 1e-9));
  return `${(ps / factor).toFixed(Math.min(digits, 12))} ${display(unit)}`;
}

/** "12.5us", "3 ms", "100" (ps); NaN when it is no time. */
export function parseTime(text: string): number {
  const m = /^\s*([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(s|ms|us|µs|ns|ps)?\s*$/i.exec(text);
  if (!m) return NaN;
  const unit = (m[2] ?? 'ps').replace('µ', 'u').toLowerCase();
  const factor = kUnits.find(([u]) => u === unit)![1];
  return Math.round(Number(m[1]) * factor);
}

/** Steps of 1, 2, 5 × 10^k that divide [from, to] into at most `most` parts. */
export function ticks(from: number, to: number, most: number): { step: number; at: number[] } {
  const raw = Math.max((to - from) / Math.max(most, 1), 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) ?? 10 * power;
  const at: number[] = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) at.push(t);
  return { step, at };
}

function exact(p: number, factor: number): string {
  const whole = Math.floor(p / factor);
  const rest = Math.round(p - whole * factor);
  if (rest === 0) return group(String(whole));
  const digits = String(rest)
    .padStart(Math.round(Math.log10(factor)), '0')
    .replace(/0+$/, '');
  return `${group(String(whole))}.${digits}`;
}
function group(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+(?!\d))/g, ' ');
}
function display(unit: string): string {
  return unit === 'us' ? 'µs' : unit;
}
