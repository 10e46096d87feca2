// SPDX-License-Identifier: Apache-2.0
// The table of messages: what the search and the histogram admit, sorted by any column. Choosing a row selects the message.
import { useMemo, useState } from 'preact/hooks';
import { opName, statusText, wrIdText } from '../model/search';
import { formatNs } from '../model/time';
import type { Trace } from '../model/types';
import { Status } from '../model/types';
import { selectMessage } from './actions';
import * as s from './state';
import { VirtualList } from './virtual_list';

type Key = 'id' | 'wrId' | 't' | 'op' | 'bytes' | 'qpn' | 'psn' | 'host' | 'total' | 'status' | 'flow';
const kColumns: { key: Key; title: string; hint: string; number: boolean }[] = [
  { key: 'id', title: 'WR', hint: 'number of the work request, in the order of posts', number: true },
  { key: 't', title: 'posted, ns', hint: 'entry of the post call', number: true },
  { key: 'op', title: 'operation', hint: 'enum ibv_wr_opcode', number: false },
  { key: 'bytes', title: 'bytes', hint: 'payload', number: true },
  { key: 'total', title: 'latency, ns', hint: 'from the post to the poll that delivers it, or until it failed', number: true },
  { key: 'status', title: 'status', hint: 'enum ibv_wc_status', number: false },
  { key: 'qpn', title: 'QPN', hint: 'queue pair number of the poster', number: true },
  { key: 'psn', title: 'PSN', hint: 'of the first packet', number: true },
  { key: 'host', title: 'from', hint: 'host that posted it', number: false },
  { key: 'flow', title: 'flow', hint: 'workload that it belongs to', number: true },
];

const kWrId: (typeof kColumns)[number] = {
  key: 'wrId',
  title: 'wr_id',
  hint: "the application's number of the work request",
  number: true,
};

function columnsOf(t: Trace): typeof kColumns {
  return t.messages.wrId ? [kColumns[0], kWrId, ...kColumns.slice(1)] : kColumns;
}

export function cell(t: Trace, r: number, key: Key): string {
  const m = t.messages;
  switch (key) {
    case 'id':
      return String(m.id[r]);
    case 'wrId':
      return m.wrId ? wrIdText(m.wrId[r]) : '–';
    case 't':
      return formatNs(m.t[r]);
    case 'op':
      return opName(m.op[r]);
    case 'bytes':
      return Number.isNaN(m.bytes[r]) ? '–' : String(m.bytes[r]);
    case 'qpn':
      return m.qpn[r] < 0 ? '–' : String(m.qpn[r]);
    case 'psn':
      return m.psn[r] < 0 ? '–' : String(m.psn[r]);
    case 'host':
      return t.header.hosts[m.host[r]] ?? '–';
    case 'flow':
      return String(m.flow[r]);
    case 'total':
      return formatNs(m.total[r]);
    case 'status':
      return statusText(t, r);
  }
}

export function MessageTable() {
  const [sort, setSort] = useState<{ key: Key; down: boolean }>({ key: 'id', down: false });
  const t = s.a.value?.trace;
  const rows = s.messageRows.value;
  const order = useMemo(() => (t ? sortRows(t, rows, sort.key, sort.down) : new Uint32Array(0)), [t, rows, sort]);
  if (!t) return null;
  const current = s.messageRow.value < 0 ? -1 : order.indexOf(s.messageRow.value);
  const range = s.latencyRange.value;
  const header = (
    <div class={`list-head message-row${t.messages.wrId ? ' wrid' : ''}`} role="row">
      {columnsOf(t).map((c) => (
        <span key={c.key} role="columnheader" aria-sort={sort.key === c.key ? (sort.down ? 'descending' : 'ascending') : 'none'}>
          <button
            class={c.number ? 'num' : ''}
            title={`${c.hint}; click to sort`}
            onClick={() => setSort({ key: c.key, down: sort.key === c.key ? !sort.down : false })}
          >
            {c.title}
            {sort.key === c.key ? (sort.down ? ' ▾' : ' ▴') : ''}
          </button>
        </span>
      ))}
    </div>
  );
  return (
    <div class="fill">
      <div class="bar">
        <span id="message-count">
          {order.length.toLocaleString('en')} of {t.messages.n.toLocaleString('en')} messages
        </span>
        {range && (
          <button onClick={() => (s.latencyRange.value = null)}>
            {range.stage || 'latency'} {formatNs(range.from)} … {formatNs(range.to)} ns ✕
          </button>
        )}
        {t.messages.n > 0 && order.length === 0 && <span class="hint">No message matches the search.</span>}
        {t.messages.n === 0 && <span class="hint">The trace holds no messages.</span>}
      </div>
      <VirtualList
        class="messages"
        label="Messages"
        count={order.length}
        rowHeight={22}
        current={current}
        header={header}
        onPick={(i) => selectMessage(t.messages.id[order[i]], true)}
        row={(i) => <Row key={order[i]} t={t} r={order[i]} index={i} selected={i === current} />}
      />
    </div>
  );
}

function Row({ t, r, index, selected }: { t: Trace; r: number; index: number; selected: boolean }) {
  const bad = t.messages.status[r] !== Status.ok;
  return (
    <div
      class={`message-row${t.messages.wrId ? ' wrid' : ''}${selected ? ' selected' : ''}${bad ? ' bad' : ''}`}
      role="row"
      aria-rowindex={index + 1}
      aria-selected={selected}
      data-message={t.messages.id[r]}
      onClick={() => selectMessage(t.messages.id[r], true)}
    >
      {columnsOf(t).map((c) => (
        <span key={c.key} role="gridcell" class={c.number ? 'num' : ''}>
          {cell(t, r, c.key)}
        </span>
      ))}
    </div>
  );
}

/** Rows by a column; NaN last, ties by id. */
export function sortRows(t: Trace, rows: Uint32Array, key: Key, down: boolean): Uint32Array {
  const out = rows.slice();
  const m = t.messages;
  const sign = down ? -1 : 1;
  if (key === 'op' || key === 'host' || key === 'status') {
    const text = (r: number) => cell(t, r, key);
    return out.sort((x, y) => sign * text(x).localeCompare(text(y)) || m.id[x] - m.id[y]);
  }
  const column: ArrayLike<number> = key === 'wrId' ? (m.wrId ?? m.id) : m[key];
  return out.sort((x, y) => {
    const a = column[x];
    const b = column[y];
    if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b)) || m.id[x] - m.id[y];
    return sign * (a - b) || m.id[x] - m.id[y];
  });
}
