// SPDX-License-Identifier: Apache-2.0
// Which lanes the timeline shows, by host.
import { orderLanes, shortPath } from '../model/lanes';
import { components, layOut } from '../view/layout';
import { toggleFold } from './actions';
import { CompactLanes } from './message_panel';
import * as s from './state';

/** Folds or opens what `id` names; `open`: it is open by default. */
function FoldButton({ id, name, open }: { id: string; name: string; open: boolean }) {
  const expanded = s.toggledFolds.value.has(id) !== open;
  return (
    <button class="fold" aria-expanded={expanded} onClick={() => toggleFold(id)} title={expanded ? 'fold' : 'show'}>
      {expanded ? '▾' : '▸'} {name}
    </button>
  );
}

export function LanesPanel() {
  const l = s.a.value;
  if (!l) return null;
  const groups = orderLanes(l.trace, (lane) => l.used[lane] > 0);
  const hidden = s.hiddenLanes.value;
  const set = (lanes: number[], show: boolean) => {
    const next = new Set(hidden);
    for (const lane of lanes) {
      if (show) next.delete(lane);
      else next.add(lane);
    }
    s.hiddenLanes.value = next;
  };
  const layout = layOut(l.trace, groups);
  const spare = (host: number) =>
    layout.strips.flatMap((e) => (e.kind === 'more' && e.key.startsWith(`${host}/`) ? [e.key] : []));
  const unused = l.trace.lanes.length - groups.reduce((n, g) => n + g.lanes.length, 0);
  return (
    <div class="scroll pad">
      <div class="bar">
        <label>
          <input
            type="checkbox"
            checked={s.onlyMessageLanes.value}
            onChange={() => (s.onlyMessageLanes.value = !s.onlyMessageLanes.value)}
          />{' '}
          only the lanes of the selected message (m)
        </label>
        <CompactLanes />
        <button onClick={() => (s.hiddenLanes.value = new Set())}>show all</button>
        <span class="hint">{unused > 0 ? `${unused} lanes hold no record and are never shown` : ''}</span>
      </div>
      <div class="lane-groups">
        {groups.map((g) => (
          <fieldset key={g.name}>
            <legend>
              {g.name} <button onClick={() => set(g.lanes, true)}>all</button>{' '}
              <button onClick={() => set(g.lanes, false)}>none</button>
            </legend>
            {[...components(l.trace, g.lanes)].map(([name, lanes]) => (
              <div class="component" key={name}>
                {lanes.length > 1 && g.host >= 0 && <FoldButton id={`${g.host}/${name}`} name={name} open />}
                {lanes.map((lane) => (
                  <label key={lane}>
                    <input
                      type="checkbox"
                      checked={!hidden.has(lane)}
                      onChange={(e) => set([lane], (e.target as HTMLInputElement).checked)}
                    />{' '}
                    {shortPath(l.trace.lanes[lane], l.trace.header.hosts)}
                  </label>
                ))}
              </div>
            ))}
            <div class="component">
              <FoldButton id={`${g.host}`} name={`all of ${g.name}`} open />
              {spare(g.host).map((key) => (
                <FoldButton key={key} id={key} name={`spare counters of ${key.split('/')[1]}`} open={false} />
              ))}
            </div>
          </fieldset>
        ))}
      </div>
    </div>
  );
}
