// SPDX-License-Identifier: Apache-2.0
// Colours of the timeline. A category has a hue (told apart by most colour-blind readers too), a point within it a shade.
import type { Point } from '../model/types';

export interface Palette {
  dark: boolean;
  background: string;
  band: string;
  label: string;
  faint: string;
  grid: string;
  text: string;
  onSpan: string;
  dim: string;
  select: string;
  arrow: string;
  implied: string;
  problem: string;
  packet: string;
  cursor: string;
  counter: string;
  counterLine: string;
}

export const kLight: Palette = {
  dark: false,
  background: '#ffffff',
  band: '#e8ecf2',
  label: '#f5f7fa',
  faint: '#6b7585',
  grid: '#e3e7ed',
  text: '#1b2430',
  onSpan: '#10161f',
  dim: '#dfe3e9',
  select: '#c2185b',
  arrow: '#b3124f',
  implied: '#8a4f68',
  problem: '#c62828',
  packet: '#5b3fa8',
  cursor: '#5c6b80',
  counter: '#bcd3e6',
  counterLine: '#45749c',
};
export const kDark: Palette = {
  dark: true,
  background: '#14181f',
  band: '#262d38',
  label: '#1b2028',
  faint: '#93a0b3',
  grid: '#272e39',
  text: '#e6ebf2',
  onSpan: '#0c1016',
  dim: '#2b323d',
  select: '#ff6fa3',
  arrow: '#ff7bac',
  implied: '#c792a8',
  problem: '#ff6b60',
  packet: '#b9a3ec',
  cursor: '#8fa0b8',
  counter: '#2d4457',
  counterLine: '#78aed6',
};

const kHues: Record<string, number> = {
  cpu: 48,
  memory: 62,
  pcie: 205,
  iommu: 178,
  hca: 150,
  fabric: 265,
  kernel: 30,
  verbs: 330,
  system: 0,
  sim: 0,
};

/** One colour per point id. */
export function pointColors(points: Point[], palette: Palette): string[] {
  const seen = new Map<string, number>();
  return points.map((p) => {
    const n = seen.get(p.cat) ?? 0;
    seen.set(p.cat, n + 1);
    const hue = kHues[p.cat] ?? hash(p.cat) % 360;
    const shift = ((n * 5) % 7) * 3.2;
    const light = (palette.dark ? 52 : 62) + shift - 6;
    const shade = Math.round(hue + ((n * 37) % 5) * 5 - 10);
    return `hsl(${(shade + 360) % 360} ${palette.dark ? 48 : 58}% ${Math.round(light)}%)`;
  });
}

function hash(text: string): number {
  let h = 7;
  for (const c of text) h = (h * 31 + c.charCodeAt(0)) >>> 0;
  return h;
}
