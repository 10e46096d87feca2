// SPDX-License-Identifier: Apache-2.0
// The page: toolbar, timelines, the panel of the selection at the right, tables below, and the states before a trace is there.
import { useEffect, useRef, useState } from 'preact/hooks';
import { open } from './actions';
import { ComparePanel } from './compare_panel';
import { FilePanel } from './file_panel';
import { Inspector } from './inspector';
import { kKeys } from './keys';
import { LadderPanel } from './ladder_panel';
import { LanesPanel } from './lanes_panel';
import { LatencyPanel } from './latency_panel';
import { MessagePanel } from './message_panel';
import { MessageTable } from './message_table';
import { ProblemsPanel } from './problems_panel';
import { RangePanel } from './range_panel';
import { StagesPanel } from './stages_panel';
import * as s from './state';
import type { Tab } from './state';
import { Timeline } from './timeline';
import { Toolbar } from './toolbar';

export function App() {
  useEffect(() => {
    document.documentElement.dataset.theme = s.palette.value.dark ? 'dark' : 'light';
  }, [s.palette.value]);
  return (
    <div class="page" onDragOver={(e) => e.preventDefault()} onDrop={drop}>
      <Toolbar />
      {s.loading.value && <Progress />}
      {s.failure.value && (
        <p class="banner error" role="alert" id="failure">
          {s.failure.value} <button onClick={() => (s.failure.value = '')}>dismiss</button>
        </p>
      )}
      <Diagnostics />
      {s.a.value ? <Workspace /> : <Welcome />}
      {s.helpOpen.value && <Help />}
      <div class="sr" role="status" aria-live="polite">
        {s.announcement.value}
      </div>
    </div>
  );
}

/** One file is the trace; of two, the second is compared with it. With a trace open, shift compares. */
function drop(e: DragEvent): void {
  e.preventDefault();
  const files = [...(e.dataTransfer?.files ?? [])];
  if (files.length === 0) return;
  if (e.shiftKey && s.a.value) void open(files[0], files[0].name, 'b');
  else void open(files[0], files[0].name, 'a').then(() => (files[1] ? open(files[1], files[1].name, 'b') : undefined));
}

function Progress() {
  const l = s.loading.value!;
  return (
    <div class="progress" role="progressbar" aria-valuenow={Math.round(l.done * 100)} aria-label={l.text}>
      <i style={{ width: `${Math.round(l.done * 100)}%` }} />
      <span>{l.text}</span>
    </div>
  );
}

function Diagnostics() {
  const all = [s.a.value, s.b.value].flatMap((l) =>
    l ? l.trace.diagnostics.filter((d) => d.severity !== 'note').map((d) => ({ ...d, name: l.trace.name })) : [],
  );
  if (all.length === 0) return null;
  return (
    <p class={`banner ${all.some((d) => d.severity === 'error') ? 'error' : 'warning'}`} role="alert" id="diagnostics">
      {all[0].name}: {all[0].text}
      {all.length > 1 && (
        <button class="link" onClick={() => (s.tab.value = 'file')}>
          {' '}
          and {all.length - 1} more
        </button>
      )}
    </p>
  );
}

function Welcome() {
  return (
    <main class="welcome">
      <h2>rdmasim trace viewer</h2>
      <p>
        Drop a trace here, or open one with the button above: <code>trace.jsonl</code> or <code>trace.perfetto.json</code>, plain
        or <code>.gz</code>. Two files dropped together are compared.
      </p>
      <p class="hint">
        A trace comes from <code>rdmasim run SCENARIO --trace json --out DIR</code>. The page reads files on this machine only;
        nothing is sent anywhere.
      </p>
    </main>
  );
}

const kTabs: [Tab, string][] = [
  ['messages', 'Messages'],
  ['problems', 'Problems'],
  ['latency', 'Latency'],
  ['stages', 'Stages'],
  ['ladder', 'Packets'],
  ['compare', 'Compare'],
  ['lanes', 'Lanes'],
  ['file', 'File'],
];

function Workspace() {
  const [bottom, setBottom] = useState(260);
  const [right, setRight] = useState(400);
  const side = s.side.value;
  return (
    <main
      class="workspace"
      style={{
        gridTemplateRows: `minmax(120px, 1fr) 6px ${bottom}px`,
        gridTemplateColumns: `minmax(0, 1fr) 6px ${right}px`,
      }}
    >
      <div class="timelines">
        <Timeline side="a" />
        {s.b.value && <Timeline side="b" />}
      </div>
      <aside class="side" aria-label="Selection">
        <div class="tabs" role="tablist" aria-label="Selection" onKeyDown={moveInTabs}>
          <TabButton
            on={side === 'message'}
            pick={() => (s.side.value = 'message')}
            label={s.message.value > 0 ? `Message ${s.message.value}` : 'Message'}
          />
          <TabButton on={side === 'record'} pick={() => (s.side.value = 'record')} label="Record" />
          <TabButton on={side === 'range'} pick={() => (s.side.value = 'range')} label="Range" />
        </div>
        <div class="scroll" role="tabpanel">
          {side === 'message' ? <MessagePanel /> : side === 'record' ? <Inspector /> : <RangePanel />}
        </div>
      </aside>
      <Splitter
        way="columns"
        label="Width of the selection's panel"
        size={right}
        set={(w) => setRight(Math.min(Math.max(w, 240), window.innerWidth - 420))}
      />
      <Splitter
        way="rows"
        label="Height of the tables"
        size={bottom}
        set={(h) => setBottom(Math.min(Math.max(h, 60), window.innerHeight - 240))}
      />
      <section class="bottom" aria-label="Tables">
        <div class="tabs" role="tablist" aria-label="Tables" onKeyDown={moveInTabs}>
          {kTabs.map(([key, label]) => (
            <TabButton
              key={key}
              on={s.tab.value === key}
              pick={() => (s.tab.value = key)}
              label={label}
              badge={key === 'problems' ? s.a.value!.problems.length : 0}
            />
          ))}
        </div>
        <div class="tab-body" role="tabpanel">
          {s.tab.value === 'messages' && <MessageTable />}
          {s.tab.value === 'problems' && <ProblemsPanel />}
          {s.tab.value === 'latency' && <LatencyPanel />}
          {s.tab.value === 'stages' && <StagesPanel />}
          {s.tab.value === 'ladder' && <LadderPanel />}
          {s.tab.value === 'compare' && <ComparePanel />}
          {s.tab.value === 'lanes' && <LanesPanel />}
          {s.tab.value === 'file' && <FilePanel />}
        </div>
      </section>
    </main>
  );
}

/** Arrows, Home and End choose among tabs, as the WAI-ARIA pattern has it. */
function moveInTabs(e: KeyboardEvent): void {
  const tabs = [...(e.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('[role=tab]')];
  const at = tabs.indexOf(e.target as HTMLElement);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[e.key];
  if (at < 0 || to === undefined) return;
  e.preventDefault();
  const tab = tabs[(to + tabs.length) % tabs.length];
  tab.click();
  tab.focus();
}

function TabButton({ on, pick, label, badge = 0 }: { on: boolean; pick: () => void; label: string; badge?: number }) {
  return (
    <button role="tab" aria-selected={on} tabIndex={on ? 0 : -1} onClick={pick}>
      {label}
      {badge > 0 && <span class="badge">{badge}</span>}
    </button>
  );
}

/** Between panels: drag it, or move it by the arrow keys. */
function Splitter({ way, label, size, set }: { way: 'rows' | 'columns'; label: string; size: number; set: (s: number) => void }) {
  const rows = way === 'rows';
  const down = (e: PointerEvent) => {
    const at = (m: PointerEvent) => (rows ? m.clientY : m.clientX);
    const begun = at(e);
    const element = e.currentTarget as HTMLElement;
    element.setPointerCapture(e.pointerId);
    element.onpointermove = (m) => set(size + begun - at(m));
    element.onpointerup = element.onpointercancel = () => (element.onpointermove = null);
  };
  return (
    <div
      class={`splitter ${way}`}
      role="separator"
      aria-orientation={rows ? 'horizontal' : 'vertical'}
      aria-label={label}
      aria-valuenow={size}
      tabIndex={0}
      onPointerDown={down}
      onKeyDown={(e) => {
        if (e.key === (rows ? 'ArrowUp' : 'ArrowLeft')) set(size + 20);
        else if (e.key === (rows ? 'ArrowDown' : 'ArrowRight')) set(size - 20);
      }}
    />
  );
}

function Help() {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.focus(), []);
  return (
    <div class="help" role="dialog" aria-label="Keys and mouse" tabIndex={-1} ref={box}>
      <h2>Keys</h2>
      <dl class="facts">
        {kKeys.map(([k, what]) => [
          <dt key={k}>
            <kbd>{k}</kbd>
          </dt>,
          <dd key={what}>{what}</dd>,
        ])}
      </dl>
      <h2>Mouse and touch</h2>
      <dl class="facts">
        <dt>wheel</dt>
        <dd>zoom; over the names of lanes or with shift: scroll</dd>
        <dt>drag</dt>
        <dd>move in time and through the lanes; with shift: measure a range and see what happens in it</dd>
        <dt>click</dt>
        <dd>select a span, and the life-line of its message; twice: show all of the message</dd>
        <dt>two fingers</dt>
        <dd>zoom</dd>
      </dl>
      <h2>The picture</h2>
      <dl class="facts">
        <dt>bars</dt>
        <dd>spans; where they are too short to tell apart, the height is the share of time in which the row is busy</dd>
        <dt>arrows</dt>
        <dd>
          from the cause to the effect; dashed: no cause is recorded, this is the span of the message that ended last before
        </dd>
        <dt>hatched</dt>
        <dd>waiting, from being enqueued to the start</dd>
        <dt>ticks, triangles</dt>
        <dd>instants; packets sent (▸) and received (◂)</dd>
      </dl>
      <button onClick={() => (s.helpOpen.value = false)}>close</button>
    </div>
  );
}
