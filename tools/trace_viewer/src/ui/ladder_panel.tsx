// SPDX-License-Identifier: Apache-2.0
// The packets of a conversation as a ladder: hosts as columns, time downwards, an arrow per packet with its PSN, retransmissions and
// losses marked. Choosing one shows its frame and its place in the timeline.
import { useMemo, useState } from 'preact/hooks';
import type { Conversation, Rung } from '../model/ladder';
import { conversations, isResponse, packetOf, rungText } from '../model/ladder';
import { formatNs } from '../model/time';
import type { Trace } from '../model/types';
import { jumpToMark, jumpToSpan } from './actions';
import * as s from './state';
import { VirtualList } from './virtual_list';

const kArrowWidth = 160;
const kRow = 22;

export function LadderPanel() {
  const [chosen, setChosen] = useState(-1);
  const [own, setOwn] = useState(false);
  const t = s.a.value?.trace;
  const all = useMemo(() => (t ? conversations(t) : []), [t]);
  const id = s.message.value;
  const ofMessage = useMemo(() => (id > 0 ? all.findIndex((c) => c.rungs.some((r) => r.msg === id)) : -1), [all, id]);
  if (!t) return null;
  if (all.length === 0) return <p class="hint pad">No packet crosses a cable in this trace.</p>;
  const at = chosen >= 0 && chosen < all.length ? chosen : Math.max(ofMessage, 0);
  const c = all[at];
  const only = own && id > 0;
  const rungs = only ? c.rungs.filter((r) => r.msg === id) : c.rungs;
  return (
    <div class="fill">
      <div class="bar">
        <label>
          conversation{' '}
          <select
            class="wide"
            id="conversation"
            value={at}
            onChange={(e) => setChosen(Number((e.target as HTMLSelectElement).value))}
          >
            {all.slice(0, 500).map((e, i) => (
              <option key={i} value={i}>
                {e.name} ({e.rungs.length.toLocaleString('en')} packets)
              </option>
            ))}
          </select>
        </label>
        <label>
          <input type="checkbox" checked={own} disabled={id === 0} onChange={() => setOwn(!own)} />{' '}
          {id > 0 ? `only WR ${id}` : 'only the selected WR'}
        </label>
        <span class="hint">{summary(rungs)}</span>
      </div>
      <Rungs t={t} c={c} rungs={rungs} />
    </div>
  );
}

function summary(rungs: Rung[]): string {
  const repeated = rungs.filter((r) => r.repeated).length;
  const lost = rungs.filter((r) => r.fate !== '').length;
  return `${repeated} sent again, ${lost} lost or changed`;
}

function Rungs({ t, c, rungs }: { t: Trace; c: Conversation; rungs: Rung[] }) {
  const sel = s.selected.value;
  const current = useMemo(() => {
    if (!sel || sel.side !== 'a') return rungs.findIndex((r) => r.msg > 0 && r.msg === s.message.value);
    if (sel.record === 'span') return rungs.findIndex((r) => r.span === sel.index);
    if (sel.record === 'packet') return rungs.findIndex((r) => packetOf(t, r) === sel.index);
    return -1;
  }, [rungs, sel, s.message.value]);
  const pick = (i: number) => {
    const packet = packetOf(t, rungs[i]);
    if (packet >= 0) jumpToMark('packet', packet);
    else jumpToSpan(rungs[i].span);
  };
  return (
    <VirtualList
      class="rungs"
      label="Packets"
      count={rungs.length}
      rowHeight={kRow}
      current={current}
      onPick={pick}
      header={
        <div class="list-head rung-row" role="row">
          {['time, ns', 'Δ, ns'].map((h) => (
            <span key={h} class="num" role="columnheader">
              {h}
            </span>
          ))}
          <span class="nodes" role="columnheader" aria-label={`between ${c.nodes.join(', ')}`}>
            {c.nodes.map((n, i) => (
              <b key={n} style={{ left: `${nodeX(i, c.nodes.length)}px` }}>
                {n}
              </b>
            ))}
          </span>
          {['PSN', 'to QP', 'packet', 'WR', 'bytes', ''].map((h, i) => (
            <span key={h} class={i === 2 || i === 5 ? '' : 'num'} role="columnheader">
              {h || <span class="sr">what became of it</span>}
            </span>
          ))}
        </div>
      }
      row={(i) => (
        <Row
          key={rungs[i].span}
          t={t}
          c={c}
          r={rungs[i]}
          before={rungs[i - 1]}
          index={i}
          selected={i === current}
          onClick={() => pick(i)}
        />
      )}
    />
  );
}

interface RowProps {
  t: Trace;
  c: Conversation;
  r: Rung;
  before: Rung | undefined;
  index: number;
  selected: boolean;
  onClick: () => void;
}

function Row({ t, c, r, before, index, selected, onClick }: RowProps) {
  const text = rungText(t, r);
  const bad = r.fate !== '' || /NAK/.test(text);
  const kind = bad ? 'bad' : r.repeated ? 'again' : isResponse(r.opcode) ? 'response' : '';
  const note = [r.repeated ? 'sent again' : '', r.fate].filter(Boolean).join(', ');
  return (
    <div
      class={`rung-row ${kind}${selected ? ' selected' : ''}`}
      role="row"
      aria-rowindex={index + 1}
      aria-selected={selected}
      data-psn={r.psn}
      onClick={onClick}
    >
      <span role="gridcell" class="num">
        {formatNs(r.t)}
      </span>
      <span role="gridcell" class="num">
        {before ? formatNs(r.t - before.t) : ''}
      </span>
      <span role="gridcell" aria-label={`from ${r.from} to ${r.to}`}>
        <Arrow nodes={c.nodes} r={r} />
      </span>
      <span role="gridcell" class="num">
        {r.psn}
      </span>
      <span role="gridcell" class="num">
        {r.qpn}
      </span>
      <span role="gridcell" title={text}>
        {text}
      </span>
      <span role="gridcell" class="num">
        {r.msg > 0 ? r.msg : ''}
      </span>
      <span role="gridcell" class="num">
        {r.bytes}
      </span>
      <span role="gridcell">{note}</span>
    </div>
  );
}

function nodeX(i: number, n: number): number {
  return n < 2 ? kArrowWidth / 2 : 30 + ((kArrowWidth - 60) * i) / (n - 1);
}

/** A lost packet's arrow ends half way. */
function Arrow({ nodes, r }: { nodes: string[]; r: Rung }) {
  const from = nodeX(nodes.indexOf(r.from), nodes.length);
  const to = nodeX(nodes.indexOf(r.to), nodes.length);
  const lost = r.fate === 'dropped';
  const end = lost ? (from + to) / 2 : to;
  const way = Math.sign(to - from);
  const y0 = 6;
  const y1 = kRow - 6;
  const y = lost ? (y0 + y1) / 2 : y1;
  return (
    <svg width={kArrowWidth} height={kRow} aria-hidden="true">
      {nodes.map((n, i) => (
        <line key={n} class="host" x1={nodeX(i, nodes.length)} x2={nodeX(i, nodes.length)} y1={0} y2={kRow} />
      ))}
      <line class="way" x1={from} y1={y0} x2={end - (lost ? 0 : 5 * way)} y2={y} />
      {lost ? (
        <path class="way" d={`M${end - 4} ${y - 4}l8 8m0 -8l-8 8`} />
      ) : (
        <path class="head" d={`M${end} ${y}l${-7 * way} -4.5v7z`} />
      )}
    </svg>
  );
}
