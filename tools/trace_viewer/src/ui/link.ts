// SPDX-License-Identifier: Apache-2.0
// The view in location.hash, so that it can be bookmarked and sent: #t=<start>&w=<width>&msg=<id>&q=<search>&tab=<tab>.
import { effect } from '@preact/signals';
import { parseTime } from '../model/time';
import { selectMessage, setView } from './actions';
import * as s from './state';
import type { Tab } from './state';

const kTabs: Tab[] = ['messages', 'problems', 'latency', 'compare', 'lanes', 'file'];

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

/** Applies the link that the page was opened with; call when a trace is there. */
export function follow(hash: string): void {
  const link = parseLink(hash);
  if (link.q) s.query.value = link.q;
  if (link.tab) s.tab.value = link.tab;
  if (link.lanes) s.onlyMessageLanes.value = true;
  if (link.msg) selectMessage(link.msg, link.t === undefined);
  if (link.t !== undefined) setView({ from: link.t, to: link.t + (link.w ?? s.view.value.to - s.view.value.from) });
}

/** Keeps the hash up to date, at most a few times a second. */
export function writeLinks(): void {
  let timer = 0;
  effect(() => {
    const w = s.view.value;
    const link: Link = { t: w.from, w: w.to - w.from, msg: s.message.value, q: s.query.value, tab: s.tab.value };
    if (s.onlyMessageLanes.value) link.lanes = 'msg';
    if (!s.a.value) return;
    clearTimeout(timer);
    timer = window.setTimeout(() => history.replaceState(null, '', formatLink(link)), 300);
  });
}
