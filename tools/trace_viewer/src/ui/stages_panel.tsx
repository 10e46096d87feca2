// SPDX-License-Identifier: Apache-2.0
// The stages of the messages that search and charts admit: mean, quantiles and share of each. A stage leads to its distribution.
import { useMemo } from 'preact/hooks';
import { mean, percentile, sorted } from '../model/stats';
import { formatNs } from '../model/time';
import { Status } from '../model/types';
import * as s from './state';

interface Row {
  stage: string;
  mean: number;
  values: Float64Array;
}

export function StagesPanel() {
  const t = s.a.value?.trace;
  const rows = s.messageRows.value;
  const table = useMemo((): Row[] => {
    if (!t) return [];
    const finished = rows.filter((r) => t.messages.status[r] === Status.ok);
    const one = (stage: string, column: Float64Array): Row => {
      const values = sorted(Array.from(finished, (r) => column[r]));
      return { stage, mean: mean(values), values };
    };
    const stages = t.header.stages.flatMap((name, k) => (t.messages.stages[k] ? [one(name, t.messages.stages[k])] : []));
    return [...stages.filter((r) => percentile(r.values, 1) > 0), one('', t.messages.total)];
  }, [t, rows]);
  if (!t) return null;
  const total = table[table.length - 1];
  if (t.messages.stages.length === 0) return <p class="hint pad">This file holds no stages; the native trace does.</p>;
  if (total.values.length === 0) return <p class="hint pad">No delivered message matches.</p>;
  const show = (stage: string) => {
    s.quantity.value = stage;
    s.tab.value = 'latency';
  };
  const at = s.messageRow.value;
  const own = (stage: string) => (at < 0 ? NaN : (s.timesOf(t, stage)?.[at] ?? NaN));
  return (
    <div class="scroll pad">
      <table class="plain stages" id="stages-table">
        <caption>
          Stages of {total.values.length.toLocaleString('en')} messages, ns. Means add up to the mean latency; quantiles do not.
        </caption>
        <thead>
          <tr>
            {['stage', 'mean', 'share', '', 'p50', 'p99', 'max', ...(at >= 0 ? [`WR ${s.message.value}`] : [])].map((h, i) => (
              <th key={h} scope="col" class={i > 0 && h ? 'num' : i === 3 ? 'wide' : ''}>
                {h || <span class="sr">share as a bar</span>}
              </th>
            ))}
          </tr>
        </thead>
        {[table.slice(0, -1), [total]].map((part, k) => (
          <tbody key={k} class={k === 1 ? 'rule' : ''}>
            {part.map((r) => (
              <tr key={r.stage} data-stage={r.stage}>
                <th scope="row">
                  <button class="link" onClick={() => show(r.stage)} title="show its distribution">
                    {r.stage || 'latency'}
                  </button>
                </th>
                <td class="num">{formatNs(r.mean)}</td>
                <td class="num">{((100 * r.mean) / total.mean).toFixed(1)} %</td>
                <td class="wide">
                  <div class="track">
                    <i style={{ left: 0, width: `${(100 * r.mean) / total.mean}%` }} />
                  </div>
                </td>
                {[0.5, 0.99, 1].map((q) => (
                  <td key={q} class="num">
                    {formatNs(percentile(r.values, q))}
                  </td>
                ))}
                {at >= 0 && <td class="num own">{formatNs(own(r.stage))}</td>}
              </tr>
            ))}
          </tbody>
        ))}
      </table>
    </div>
  );
}
