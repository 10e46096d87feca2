// SPDX-License-Identifier: Apache-2.0
// Two traces side by side: differences per stage over all paired messages, quantiles, and the messages that differ most.
import { useMemo, useState } from 'preact/hooks';
import { formatNs, formatPs } from '../model/time';
import { opName } from '../model/search';
import { close, open, selectMessage } from './actions';
import * as s from './state';
import { VirtualList } from './virtual_list';

export function ComparePanel() {
  const c = s.comparison.value;
  const [sort, setSort] = useState<'id' | 'delta'>('delta');
  const pairs = useMemo(() => {
    if (!c) return [];
    return sort === 'id' ? c.pairs : c.pairs.slice().sort((x, y) => Math.abs(y.delta) - Math.abs(x.delta) || x.id - y.id);
  }, [c, sort]);
  const a = s.a.value?.trace;
  const b = s.b.value?.trace;
  if (!a) return null;
  if (!c || !b) {
    return (
      <div class="pad">
        <p>Open a second trace to see it beside this one: messages are aligned by their number, stages by their name.</p>
        <label class="button">
          Open second trace… <input type="file" class="sr" id="file-b" onChange={pickB} />
        </label>
      </div>
    );
  }
  const longest = Math.max(...c.stages.map((e) => Math.abs((e.b || 0) - (e.a || 0))), 1);
  const current = pairs.findIndex((p) => p.id === s.message.value);
  return (
    <div class="fill compare">
      <div class="compare-stages">
        <div class="bar">
          <strong>A</strong> {a.header.scenario || a.name} <strong class="b">B</strong> {b.header.scenario || b.name}{' '}
          <button onClick={() => close('b')}>close B</button>
        </div>
        <p class="hint">
          {c.pairs.length.toLocaleString('en')} messages aligned{c.onlyA > 0 ? `, ${c.onlyA} only in A` : ''}
          {c.onlyB > 0 ? `, ${c.onlyB} only in B` : ''}
          {c.unlike > 0 ? (
            <strong class="error"> {c.unlike} differ in operation or size: this may be another workload</strong>
          ) : (
            ''
          )}
        </p>
        <table class="plain" id="compare-table">
          <caption>Means over aligned messages, ns</caption>
          <thead>
            <tr>
              <th scope="col">stage</th>
              <th scope="col" class="num">
                A
              </th>
              <th scope="col" class="num">
                B
              </th>
              <th scope="col" class="num">
                B − A
              </th>
              <th scope="col" class="wide" />
            </tr>
          </thead>
          <tbody>
            {c.stages
              .filter((e) => e.a || e.b)
              .map((e) => (
                <Delta key={e.stage} name={e.stage} a={e.a} b={e.b} longest={longest} />
              ))}
          </tbody>
          <tbody class="rule">
            {c.quantiles.map((q) => (
              <Delta key={q.name} name={`latency, ${q.name}`} a={q.a} b={q.b} longest={longest} />
            ))}
          </tbody>
        </table>
      </div>
      <VirtualList
        class="pairs"
        label="Aligned messages"
        count={pairs.length}
        rowHeight={22}
        current={current}
        onPick={(i) => selectMessage(pairs[i].id, true)}
        header={
          <div class="list-head pair-row" role="row">
            <span role="columnheader">
              <button class="num" onClick={() => setSort('id')}>
                WR{sort === 'id' ? ' ▴' : ''}
              </button>
            </span>
            <span role="columnheader">operation</span>
            <span role="columnheader" class="num">
              A, ns
            </span>
            <span role="columnheader" class="num">
              B, ns
            </span>
            <span role="columnheader">
              <button class="num" onClick={() => setSort('delta')}>
                B − A, ps{sort === 'delta' ? ' ▾' : ''}
              </button>
            </span>
          </div>
        }
        row={(i) => {
          const p = pairs[i];
          return (
            <div
              key={p.id}
              class={`pair-row${i === current ? ' selected' : ''}`}
              role="row"
              aria-rowindex={i + 1}
              aria-selected={i === current}
              onClick={() => selectMessage(p.id, true)}
            >
              <span role="gridcell" class="num">
                {p.id}
              </span>
              <span role="gridcell">{opName(a.messages.op[p.a])}</span>
              <span role="gridcell" class="num">
                {formatNs(a.messages.total[p.a])}
              </span>
              <span role="gridcell" class="num">
                {formatNs(b.messages.total[p.b])}
              </span>
              <span role="gridcell" class={`num ${p.delta > 0 ? 'worse' : p.delta < 0 ? 'better' : ''}`}>
                {p.delta > 0 ? '+' : ''}
                {formatPs(p.delta)}
              </span>
            </div>
          );
        }}
      />
    </div>
  );
}

function Delta({ name, a, b, longest }: { name: string; a: number; b: number; longest: number }) {
  const d = (Number.isNaN(b) ? 0 : b) - (Number.isNaN(a) ? 0 : a);
  const width = Math.min(50, (50 * Math.abs(d)) / longest);
  return (
    <tr data-stage={name}>
      <th scope="row">{name}</th>
      <td class="num">{formatNs(a)}</td>
      <td class="num">{formatNs(b)}</td>
      <td class={`num ${d > 0 ? 'worse' : d < 0 ? 'better' : ''}`}>
        {d > 0 ? '+' : ''}
        {formatNs(d)}
      </td>
      <td class="wide">
        <div class="track middle">
          <i class={d > 0 ? 'worse' : 'better'} style={{ left: `${d > 0 ? 50 : 50 - width}%`, width: `${width}%` }} />
        </div>
      </td>
    </tr>
  );
}

function pickB(e: Event): void {
  const input = e.target as HTMLInputElement;
  const file = input.files?.[0];
  if (file) void open(file, file.name, 'b');
  input.value = '';
}
