// SPDX-License-Identifier: Apache-2.0
// Keeps the view in location.hash, so that it can be bookmarked and sent, and follows such links.
import { effect } from '@preact/signals';
import { selectMessage, setView } from './actions';
import { formatLink, parseLink } from './link_text';
import type { Link } from './link_text';
import * as s from './state';

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
