// SPDX-License-Identifier: Apache-2.0
// What happens in the range that was measured with shift and drag: work by lane and point, and the messages that are posted in it.
import { useMemo } from 'preact/hooks';
import { shortPath } from '../model/lanes';
import { workIn } from '../model/range';
import { mean } from '../model/stats';
import { formatDuration, formatNs } from '../model/time';
import { Status } from '../model/types';
import { jumpToSpan, setView } from './actions';
import * as s from './state';

const kMost = 200;

export function RangePanel() {
  const t = s.a.value?.trace;
  const range = s.range.value;
  const work = useMemo(() => (t && range ? workIn(t, range.from, range.to) : []), [t, range]);
  if (!t || !range)
    return <p class="hint pad">Hold shift and drag over the timeline: what happens in that range is shown here.</p>;
  const length = range.to - range.from;
  const m = t.messages;
  const posted = Array.from({ length: m.n }, (_, r) => r).filter((r) => m.t[r] >= range.from && m.t[r] <= range.to);
  const delivered = posted.filter((r) => m.status[r] === Status.ok);
  return (
    <div class="pad" id="range-panel">
      <h2>{formatDuration(Math.round(length))}</h2>
      <dl class="facts">
        <dt>from, to</dt>
        <dd>
          {formatDuration(Math.round(range.from))}, {formatDuration(Math.round(range.to))}
        </dd>
        <dt>messages posted</dt>
        <dd>{posted.length.toLocaleString('en')}</dd>
        <dt>their mean latency</dt>
        <dd>{formatDuration(Math.round(mean(delivered.map((r) => m.total[r]))))}</dd>
      </dl>
      <div class="bar">
        <button onClick={() => setView(range)} title="z">
          zoom to it
        </button>
        <button onClick={() => (s.query.value = `t:${Math.floor(range.from)}..${Math.ceil(range.to)}`)}>
          only these messages
        </button>
      </div>
      <table class="waterfall steps" id="range-work">
        <caption>Work in it, by lane and point, ns. Busy: at least one is in service.</caption>
        <thead>
          <tr>
            {['what', 'count', 'busy', 'mean, longest'].map((h, i) => (
              <th key={h} scope="col" class={i > 0 ? 'num' : ''}>
                {h}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {work.slice(0, kMost).map((w) => {
            const lane = t.lanes[w.lane];
            const share = length > 0 ? (100 * w.busy) / length : 0;
            return (
              <tr key={`${w.lane} ${w.point}`} data-point={t.points[w.point].name}>
                <th scope="row">
                  <button class="link" onClick={() => jumpToSpan(w.first)}>
                    {t.points[w.point].name}
                    <small>
                      {lane.host < 0 ? 'fabric' : (t.header.hosts[lane.host] ?? '')} {shortPath(lane, t.header.hosts)}
                    </small>
                  </button>
                </th>
                <td class="num">{w.count.toLocaleString('en')}</td>
                <td class="num">
                  {formatNs(w.busy)}
                  <small>{share.toFixed(1)} %</small>
                </td>
                <td class="num">
                  {formatNs(w.sum / w.count)}
                  <small>{formatNs(w.longest)}</small>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {work.length > kMost && <p class="hint">and {work.length - kMost} less busy ones</p>}
      {work.length === 0 && <p class="hint">Nothing is at work in it.</p>}
    </div>
  );
}
