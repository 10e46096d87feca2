// SPDX-License-Identifier: Apache-2.0
// One message: its facts, its waterfall of stages (exact, with the second trace beside it if there is one), and its steps over both
// hosts with waits hatched before service.
import { useMemo } from 'preact/hooks';
import { stageNames } from '../model/compare';
import { shortPath } from '../model/lanes';
import type { Lifeline } from '../model/lifeline';
import { opName, statusText, wrIdText } from '../model/search';
import { formatDuration, formatNs, formatPs } from '../model/time';
import type { Trace } from '../model/types';
import { Status } from '../model/types';
import type { Step } from '../model/waterfall';
import { stagesOf, stepsOf } from '../model/waterfall';
import { jumpToSpan, reach, selectMessage } from './actions';
import * as s from './state';

export function MessagePanel() {
  const t = s.a.value?.trace;
  const id = s.message.value;
  const r = s.messageRow.value;
  const line = s.line.value;
  if (!t) return null;
  if (id === 0)
    return (
      <p class="hint pad">Choose a message in the table, or click a span that belongs to one. n and p step through messages.</p>
    );
  if (r < 0 || !line) return <p class="hint pad">Message {id} is not in this trace.</p>;
  const m = t.messages;
  const peers = [...new Set(line.spans.map((i) => t.lanes[t.spans.lane[i]].host).filter((h) => h >= 0 && h !== m.host[r]))];
  return (
    <div class="pad" id="message-panel" data-message={id}>
      <h2>
        WR {id}: {opName(m.op[r])} {Number.isNaN(m.bytes[r]) ? '' : `${m.bytes[r]} bytes`}
      </h2>
      <dl class="facts">
        <dt>path</dt>
        <dd>{[t.header.hosts[m.host[r]] ?? '?', ...peers.map((h) => t.header.hosts[h] ?? `host ${h}`)].join(' → ')}</dd>
        <dt>QPN, first PSN</dt>
        <dd>
          {m.qpn[r] < 0 ? '–' : m.qpn[r]}, {m.psn[r] < 0 ? '–' : m.psn[r]}
        </dd>
        {m.wrId && (
          <>
            <dt>wr_id</dt>
            <dd>{wrIdText(m.wrId[r])}</dd>
          </>
        )}
        <dt>posted</dt>
        <dd>{formatDuration(m.t[r])}</dd>
        <dt>{m.status[r] === Status.error ? 'until it failed' : 'latency'}</dt>
        <dd id="latency">{Number.isNaN(m.total[r]) ? 'not finished' : formatDuration(m.total[r])}</dd>
        <dt>status</dt>
        <dd>{statusText(t, r)}</dd>
      </dl>
      <div class="bar">
        <button onClick={() => selectMessage(id, true)} title="f">
          show all of it
        </button>
        <label>
          <input
            type="checkbox"
            checked={s.onlyMessageLanes.value}
            onChange={() => (s.onlyMessageLanes.value = !s.onlyMessageLanes.value)}
          />{' '}
          only its lanes
        </label>
        <CompactLanes />
      </div>
      <StageTable t={t} r={r} />
      <Steps t={t} r={r} line={line} />
    </div>
  );
}

/** Of the message's panel and of that of the lanes. */
export function CompactLanes() {
  return (
    <label title="one row per lane, no counters (c)">
      <input type="checkbox" checked={s.compactLanes.value} onChange={() => (s.compactLanes.value = !s.compactLanes.value)} />{' '}
      compact
    </label>
  );
}

function StageTable({ t, r }: { t: Trace; r: number }) {
  const stages = stagesOf(t, r);
  const other = s.b.value && s.messageRowB.value >= 0 ? stagesOf(s.b.value.trace, s.messageRowB.value) : null;
  if (!stages) {
    return (
      <p class="hint">
        {t.messages.stages.length === 0
          ? 'This file holds no stages; the native trace does.'
          : 'The message was not delivered, and none of its stages is known.'}
      </p>
    );
  }
  const longest = Math.max(stages.total, other?.total ?? 0, 1);
  const names = other
    ? stageNames(
        stages.bars.map((b) => b.stage),
        other.bars.map((b) => b.stage),
      )
    : stages.bars.map((b) => b.stage);
  return (
    <table class="waterfall" id="waterfall">
      <caption>
        Stages, in picoseconds
        {t.messages.status[r] === Status.ok ? '; they partition the latency' : ', as far as it came'}
        {other ? '. A above B' : ''}
      </caption>
      <thead>
        <tr>
          <th scope="col">stage</th>
          <th scope="col" class="num">
            {other ? 'A, ps' : 'ps'}
          </th>
          {other ? (
            <th scope="col" class="num">
              B − A, ps
            </th>
          ) : (
            <th scope="col" class="num">
              share
            </th>
          )}
          <th scope="col" class="wide">
            <span class="sr">position</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {names.map((name) => {
          const a = stages.bars.find((e) => e.stage === name);
          const b = other?.bars.find((e) => e.stage === name);
          const delta = (b?.ps ?? 0) - (a?.ps ?? 0);
          return (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="num" data-ps={a?.ps ?? 0}>
                {formatPs(a?.ps ?? 0)}
              </td>
              {other ? (
                <td class={`num ${delta > 0 ? 'worse' : delta < 0 ? 'better' : ''}`}>
                  {delta > 0 ? '+' : ''}
                  {formatPs(delta)}
                </td>
              ) : (
                <td class="num">{((100 * (a?.ps ?? 0)) / stages.total).toFixed(1)} %</td>
              )}
              <td class="wide">
                <div class={`track${other ? ' two' : ''}`}>
                  {a && <i style={bar(a.from, a.ps, longest)} />}
                  {b && <i class="b" style={bar(b.from, b.ps, longest)} />}
                </div>
              </td>
            </tr>
          );
        })}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">sum</th>
          <td class="num" id="stage-sum" data-ps={stages.sum}>
            {formatPs(stages.sum)}
          </td>
          {other ? <td class="num">{formatPs(other.sum - stages.sum)}</td> : <td class="num">100 %</td>}
          <td class="wide hint">{t.messages.status[r] === Status.ok ? '= latency' : 'as far as it came'}</td>
        </tr>
      </tfoot>
    </table>
  );
}

function bar(from: number, length: number, whole: number): { left: string; width: string } {
  return { left: `${(100 * from) / whole}%`, width: `max(1px, ${(100 * length) / whole}%)` };
}

function Steps({ t, r, line }: { t: Trace; r: number; line: Lifeline }) {
  const steps = useMemo(() => stepsOf(t, line), [t, line]);
  const [from, to] = useMemo((): [number, number] => {
    const [a, z] = reach(t, r);
    // Work goes on after the delivery (acknowledgement, the sender's own completion); polls may begin before the post.
    return [a, Math.max(z, ...steps.map((e) => e.to))];
  }, [t, r, steps]);
  const delivered = t.messages.t[r] + t.messages.total[r];
  return (
    <table class="waterfall steps" id="steps">
      <caption>Steps of its path, by lane and point: waits hatched, service solid. The line marks the delivery.</caption>
      <thead>
        <tr>
          <th scope="col">step</th>
          <th scope="col" class="num">
            wait, ns
          </th>
          <th scope="col" class="num">
            busy, ns
          </th>
          <th scope="col" class="wide">
            <span class="sr">position</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {steps.map((e) => (
          <StepRow key={`${e.lane} ${e.point}`} t={t} step={e} from={from} to={to} delivered={delivered} />
        ))}
      </tbody>
    </table>
  );
}

function StepRow({ t, step, from, to, delivered }: { t: Trace; step: Step; from: number; to: number; delivered: number }) {
  const lane = t.lanes[step.lane];
  const whole = Math.max(to - from, 1);
  const place = (a: number, z: number) => {
    const x0 = Math.max(a, from);
    return bar(x0 - from, Math.max(0, Math.min(z, to) - x0), whole);
  };
  const { start, dur, wait } = t.spans;
  const name = t.points[step.point].name;
  const color = s.colors.value[step.point];
  const host = lane.host < 0 ? 'fabric' : (t.header.hosts[lane.host] ?? '');
  return (
    <tr>
      <th scope="row">
        <button class="link" onClick={() => jumpToSpan(step.spans[0])} title={`${name} on ${lane.path}`}>
          {name}
          {step.spans.length > 1 ? ` ×${step.spans.length}` : ''}
          <small>
            {host} {shortPath(lane, t.header.hosts)}
          </small>
        </button>
      </th>
      <td class="num">{step.wait > 0 ? formatNs(step.wait) : ''}</td>
      <td class="num">{formatNs(step.service)}</td>
      <td class="wide">
        <div class="track">
          {step.spans.map((i) => wait[i] > 0 && <i key={`w${i}`} class="wait" style={place(start[i] - wait[i], start[i])} />)}
          {step.spans.map((i) => (
            <i key={i} style={{ ...place(start[i], start[i] + dur[i]), background: color }} />
          ))}
          {delivered >= from && delivered <= to && <b style={{ left: `${(100 * (delivered - from)) / whole}%` }} />}
        </div>
      </td>
    </tr>
  );
}
