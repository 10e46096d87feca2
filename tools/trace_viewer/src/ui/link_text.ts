// SPDX-License-Identifier: Apache-2.0
// Text of deep links: #t=<start>&w=<width>&msg=<id>&q=<search>&tab=<tab>&lanes=msg. Times may have units: 12.5us.
import { parseTime } from '../model/time';
import type { Tab } from './state';

const kTabs: Tab[] = ['messages', 'problems', 'latency', 'stages', 'ladder', 'compare', 'lanes', 'file'];

export interface Link {
  t?: number;
  w?: number;
  msg?: number;
  q?: string;
  tab?: Tab;
  lanes?: 'msg';
}

export function parseLink(hash: string): Link {
  const p = new URLSearchParams(hash.replace(/^#/, ''));
  const link: Link = {};
  const t = parseTime(p.get('t') ?? '');
  const w = parseTime(p.get('w') ?? '');
  if (Number.isFinite(t)) link.t = t;
  if (Number.isFinite(w) && w > 0) link.w = w;
  const msg = Number(p.get('msg') ?? NaN);
  if (Number.isInteger(msg) && msg > 0) link.msg = msg;
  const q = p.get('q');
  if (q) link.q = q;
  const tab = p.get('tab') as Tab;
  if (kTabs.includes(tab)) link.tab = tab;
  if (p.get('lanes') === 'msg') link.lanes = 'msg';
  return link;
}

export function formatLink(link: Link): string {
  const parts: string[] = [];
  if (link.t !== undefined) parts.push(`t=${Math.round(link.t)}ps`);
  if (link.w !== undefined) parts.push(`w=${Math.round(link.w)}ps`);
  if (link.msg) parts.push(`msg=${link.msg}`);
  if (link.q) parts.push(`q=${encodeURIComponent(link.q)}`);
  if (link.tab && link.tab !== 'messages') parts.push(`tab=${link.tab}`);
  if (link.lanes) parts.push('lanes=msg');
  return `#${parts.join('&')}`;
}
