// SPDX-License-Identifier: Apache-2.0
// The bar at the top: files, search, theme, exports, help.
import { formatDuration } from '../model/time';
import { close, open, stepMatch, stepMessage } from './actions';
import { exportPng, exportSvg } from './export';
import * as s from './state';
import type { Side } from './state';

export function Toolbar() {
  const a = s.a.value;
  const w = s.view.value;
  return (
    <header class="toolbar">
      <h1 class="brand">rdmasim</h1>
      <FileButton side="a" label={a ? a.trace.name : 'Open trace…'} />
      {a &&
        (s.b.value ? (
          <button onClick={() => close('b')} title="close the second trace">
            B: {s.b.value.trace.header.scenario || s.b.value.trace.name} ✕
          </button>
        ) : (
          <FileButton side="b" label="Compare…" />
        ))}
      {a && (
        <>
          <Search />
          <span class="grow" />
          <span class="hint" id="window" title="length of the visible window">
            {formatDuration(Math.round(w.to - w.from))}
          </span>
          <button onClick={() => stepMessage(-1)} title="previous message (p)" aria-label="Previous message">
            ◂
          </button>
          <button onClick={() => stepMessage(1)} title="next message (n)" aria-label="Next message">
            ▸
          </button>
          <button onClick={() => exportSvg()} title="save the timeline as SVG">
            SVG
          </button>
          <button onClick={() => void exportPng()} title="save the timeline as PNG">
            PNG
          </button>
        </>
      )}
      {!a && <span class="grow" />}
      <ThemeButton />
      <button onClick={() => (s.helpOpen.value = !s.helpOpen.value)} aria-expanded={s.helpOpen.value} title="keys and mouse (?)">
        ?
      </button>
    </header>
  );
}

function FileButton({ side, label }: { side: Side; label: string }) {
  const pick = (e: Event) => {
    const input = e.target as HTMLInputElement;
    const file = input.files?.[0];
    if (file) void open(file, file.name, side);
    // Else choosing the same file again would change nothing and so do nothing.
    input.value = '';
  };
  return (
    <label class="button" title={side === 'a' ? 'open a trace (.jsonl, .json, .gz)' : 'open a second trace beside this one'}>
      {label} <input type="file" class="sr" id={`open-${side}`} onChange={pick} />
    </label>
  );
}

function Search() {
  const found = s.matches.value;
  const marks = s.matchingInstants.value;
  const count = (n: number, what: string) => `${n.toLocaleString('en')} ${what}${n === 1 ? '' : 's'}`;
  const errors = s.parsed.value.errors;
  return (
    <span class="search" role="search">
      <input
        id="search"
        type="search"
        placeholder="search: qpn:256 psn:>100 opcode:ack status:error"
        aria-label="Search and filter"
        title="words are joined by “and”: key:value with qpn, wr_id, psn, msg, opcode, status, lane, point, host, bytes, latency, or any argument of a point; values may be 0x…, >x, <x, a..b, times like 3us; a bare word is a piece of a lane's or point's name, a bare number a message"
        value={s.query.value}
        onInput={(e) => (s.query.value = (e.target as HTMLInputElement).value)}
        onKeyDown={(e) => {
          if (e.key === 'Enter') {
            e.preventDefault();
            stepMatch(e.shiftKey ? -1 : 1);
          }
        }}
      />
      {errors.length > 0 && <span class="error">{errors[0]}</span>}
      {found && (
        <span id="found">
          {count(found.length, 'span')}
          {marks && marks.length > 0 ? `, ${count(marks.length, 'instant')}` : ''}{' '}
          <button onClick={() => stepMatch(-1)} title="previous match (,)" aria-label="Previous match">
            ‹
          </button>
          <button onClick={() => stepMatch(1)} title="next match (.)" aria-label="Next match">
            ›
          </button>
        </span>
      )}
    </span>
  );
}

function ThemeButton() {
  const next = { auto: 'dark', dark: 'light', light: 'auto' } as const;
  const now = s.theme.value;
  return (
    <button
      onClick={() => (s.theme.value = next[now])}
      title={`colours: ${now}; click for ${next[now]}`}
      aria-label={`Colours: ${now}`}
    >
      {{ auto: '◐', dark: '●', light: '○' }[now]}
    </button>
  );
}
