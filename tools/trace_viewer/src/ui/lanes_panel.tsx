// SPDX-License-Identifier: Apache-2.0
// Which lanes the timeline shows, by host.
import { orderLanes, shortPath } from '../model/lanes';
import * as s from './state';

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
            {g.lanes.map((lane) => (
              <label key={lane}>
                <input
                  type="checkbox"
                  checked={!hidden.has(lane)}
                  onChange={(e) => set([lane], (e.target as HTMLInputElement).checked)}
                />
                {shortPath(l.trace.lanes[lane], l.trace.header.hosts)}
              </label>
            ))}
          </fieldset>
        ))}
      </div>
    </div>
  );
}
