// SPDX-License-Identifier: Apache-2.0
// Starts the page: theme, keys, links, the embedded trace, and window.rdmasim for tests and scripts.
import { render } from 'preact';
import './style.css';
import './panels.css';
import './records.css';
import { open, selectMessage, setView } from './ui/actions';
import { App } from './ui/app';
import { openEmbedded } from './ui/embedded';
import { pngBlob, svgText } from './ui/export';
import { attachKeys } from './ui/keys';
import { follow, writeLinks } from './ui/link';
import * as state from './ui/state';
import { instances } from './ui/timeline';

const dark = window.matchMedia('(prefers-color-scheme: dark)');
state.systemDark.value = dark.matches;
dark.addEventListener('change', (e) => (state.systemDark.value = e.matches));
attachKeys();
render(<App />, document.getElementById('app')!);

const hash = location.hash;
void openEmbedded().then((opened) => {
  if (opened) follow(hash);
  writeLinks();
  window.addEventListener('hashchange', () => follow(location.hash));
});

/** For tests and scripts; not used by the page itself. */
(window as unknown as { rdmasim: unknown }).rdmasim = { state, instances, open, selectMessage, setView, svgText, pngBlob };
