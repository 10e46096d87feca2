// SPDX-License-Identifier: Apache-2.0
// What the file says of itself, what was read, and what was wrong with it.
import { formatDuration } from '../model/time';
import type { Loaded } from './state';
import * as s from './state';

export function FilePanel() {
  return (
    <div class="scroll pad file-panel">
      {s.a.value && <Facts title={s.b.value ? 'A' : ''} l={s.a.value} />}
      {s.b.value && <Facts title="B" l={s.b.value} />}
    </div>
  );
}

function Facts({ title, l }: { title: string; l: Loaded }) {
  const t = l.trace;
  const h = t.header;
  const n = (x: number) => x.toLocaleString('en');
  return (
    <section>
      <h2>
        {title} {t.name}
      </h2>
      {t.diagnostics.length > 0 && (
        <ul class="diagnostics" aria-label="Messages about the file">
          {t.diagnostics.map((d) => (
            <li key={d.text} class={d.severity}>
              {d.text}
            </li>
          ))}
        </ul>
      )}
      <dl class="facts">
        <dt>scenario, seed</dt>
        <dd>
          {h.scenario}, {h.seed}
        </dd>
        <dt>simulator</dt>
        <dd>{h.version}</dd>
        <dt>format</dt>
        <dd>
          {h.format}, {t.complete ? 'complete' : 'cut short'}, times in {t.resolution === 1 ? 'ps' : 'ns'}
        </dd>
        <dt>hosts</dt>
        <dd>{h.hosts.join(', ')}</dd>
        <dt>time</dt>
        <dd>
          {formatDuration(t.t0)} … {formatDuration(t.t1)}
        </dd>
        <dt>records</dt>
        <dd>
          {n(t.spans.n)} spans, {n(t.instants.n)} instants, {n(t.counters.n)} counter values, {n(t.states.n)} state changes,{' '}
          {n(t.packets.n)} packets, {n(t.messages.n)} messages
        </dd>
        <dt>read</dt>
        <dd>
          {n(t.bytesRead)} bytes in {(l.ms / 1000).toFixed(2)} s
        </dd>
      </dl>
      <details>
        <summary>Effective configuration</summary>
        <pre>{JSON.stringify(h.config, null, 2)}</pre>
      </details>
    </section>
  );
}
