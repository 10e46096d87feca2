// SPDX-License-Identifier: Apache-2.0
// The list of problems with a filter by kind; choosing one shows it in the timeline.
import { useMemo, useState } from 'preact/hooks';
import type { Problem } from '../model/problems';
import { formatNs } from '../model/time';
import { jumpToProblem } from './actions';
import * as s from './state';
import { VirtualList } from './virtual_list';

const kSign = { error: '●', warning: '▲', info: '○' };

export function ProblemsPanel() {
  const l = s.a.value;
  const [kind, setKind] = useState('');
  const [current, setCurrent] = useState(-1);
  const kinds = useMemo(() => {
    const count = new Map<string, number>();
    for (const p of l?.problems ?? []) count.set(p.kind, (count.get(p.kind) ?? 0) + 1);
    return [...count].sort((x, y) => y[1] - x[1]);
  }, [l]);
  if (!l) return null;
  const shown = kind === '' ? l.problems : l.problems.filter((p) => p.kind === kind);
  const pick = (i: number) => {
    setCurrent(i);
    jumpToProblem(shown[i]);
  };
  return (
    <div class="fill">
      <div class="bar" role="group" aria-label="Kinds of problems">
        <button
          aria-pressed={kind === ''}
          onClick={() => {
            setKind('');
            setCurrent(-1);
          }}
        >
          all {l.problems.length}
        </button>
        {kinds.map(([k, n]) => (
          <button
            key={k}
            aria-pressed={kind === k}
            onClick={() => {
              setKind(k);
              setCurrent(-1);
            }}
          >
            {k} {n}
          </button>
        ))}
        {l.problems.length === 0 && <span class="hint">No error, retransmission, overrun or lost wake-up is in this trace.</span>}
      </div>
      <VirtualList
        class="problems"
        label="Problems"
        count={shown.length}
        rowHeight={22}
        current={current}
        onPick={pick}
        header={
          <div class="list-head problem-row" role="row">
            {['', 'time, ns', 'what', 'where', 'WR', 'details'].map((h, i) => (
              <span key={h} class={i === 1 || i === 4 ? 'num' : ''} role="columnheader">
                {h || <span class="sr">severity</span>}
              </span>
            ))}
          </div>
        }
        row={(i) => <Row key={i} p={shown[i]} index={i} selected={i === current} onClick={() => pick(i)} />}
      />
      {current >= 0 && current < shown.length && (
        <p class="detail" id="problem">
          {shown[current].kind}: {shown[current].text}
        </p>
      )}
    </div>
  );
}

function Row({ p, index, selected, onClick }: { p: Problem; index: number; selected: boolean; onClick: () => void }) {
  const t = s.a.value!.trace;
  return (
    <div
      class={`problem-row sev-${p.severity}${selected ? ' selected' : ''}`}
      role="row"
      aria-rowindex={index + 1}
      aria-selected={selected}
      data-kind={p.kind}
      onClick={onClick}
    >
      <span role="gridcell" class="sign" title={p.severity}>
        {kSign[p.severity]}
        <span class="sr">{p.severity}</span>
      </span>
      <span role="gridcell" class="num">
        {formatNs(p.t)}
      </span>
      <span role="gridcell">{p.kind}</span>
      <span role="gridcell">{p.lane >= 0 ? t.lanes[p.lane].path : ''}</span>
      <span role="gridcell" class="num">
        {p.msg > 0 ? p.msg : ''}
      </span>
      <span role="gridcell" title={p.text}>
        {p.text}
      </span>
    </div>
  );
}
