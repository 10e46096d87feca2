// SPDX-License-Identifier: Apache-2.0
// Everything about the selected record: its times, its cause and effects, its arguments by name, and its raw bytes with the fields in
// them, if the trace carries bytes.
import { useMemo, useState } from 'preact/hooks';
import type { Decoded, Field } from '../decode/bytes';
import { decodeBytes } from '../decode/index';
import { formatArgument, valueName } from '../decode/values';
import { causeOf, effectsOf, spansOfMessage } from '../model/lifeline';
import { formatDuration } from '../model/time';
import type { Point, Trace } from '../model/types';
import { spanLabel } from '../view/draw';
import { jumpToSpan, selectMessage } from './actions';
import * as s from './state';

export function Inspector() {
  const sel = s.selected.value;
  const source = sel?.side === 'b' ? s.b.value : s.a.value;
  if (!sel || !source) return <p class="hint pad">Click a span, an instant (tick) or a packet (triangle) in the timeline.</p>;
  const t = source.trace;
  return (
    <div class="pad" id="inspector" key={`${sel.side}${sel.record}${sel.index}`}>
      {sel.record === 'span' ? (
        <SpanFacts t={t} i={sel.index} />
      ) : sel.record === 'instant' ? (
        <InstantFacts t={t} i={sel.index} />
      ) : (
        <PacketFacts t={t} i={sel.index} />
      )}
    </div>
  );
}

function Message({ id }: { id: number }) {
  if (id === 0) return <dd>none</dd>;
  return (
    <dd>
      <button class="link" onClick={() => selectMessage(id, true)}>
        WR {id}
      </button>
    </dd>
  );
}

function Arguments({ point, args, i }: { point: Point; args: Float64Array[]; i: number }) {
  if (point.args.length === 0) return null;
  return (
    <>
      <h3>Arguments</h3>
      <dl class="facts">
        {point.args.map((a, k) => {
          const name = valueName(point.name, a, args[k][i]);
          return [
            <dt key={a}>{a}</dt>,
            <dd key={`${a}=`}>
              {formatArgument(a, args[k][i])}
              {name ? <em> {name}</em> : null}
            </dd>,
          ];
        })}
      </dl>
    </>
  );
}

function SpanFacts({ t, i }: { t: Trace; i: number }) {
  const sp = t.spans;
  const point = t.points[sp.point[i]];
  const cause = causeOf(t, i);
  const effects = useMemo(() => effectsOf(t, i), [t, i]);
  return (
    <>
      <h2>{point.name}</h2>
      <dl class="facts">
        <dt>lane</dt>
        <dd>
          {t.lanes[sp.lane[i]].path} <small>({hostName(t, sp.lane[i])})</small>
        </dd>
        <dt>enqueued</dt>
        <dd>{formatDuration(sp.start[i] - sp.wait[i])}</dd>
        <dt>start</dt>
        <dd>{formatDuration(sp.start[i])}</dd>
        <dt>end</dt>
        <dd>{formatDuration(sp.start[i] + sp.dur[i])}</dd>
        <dt>wait</dt>
        <dd>{formatDuration(sp.wait[i])}</dd>
        <dt>service</dt>
        <dd>{formatDuration(sp.dur[i])}</dd>
        <dt>message</dt>
        <Message id={sp.msg[i]} />
        <dt>span</dt>
        <dd>{sp.id[i]}</dd>
        <dt>cause</dt>
        <dd>
          {cause >= 0 ? (
            <Jump t={t} i={cause} />
          ) : sp.parent[i] > 0 ? (
            `span ${sp.parent[i]}, which is not in the trace`
          ) : (
            'not recorded'
          )}
        </dd>
        {effects.length > 0 && (
          <>
            <dt>effects</dt>
            <dd>
              {effects.slice(0, 20).map((e) => (
                <div key={e}>
                  <Jump t={t} i={e} />
                </div>
              ))}
              {effects.length > 20 ? `and ${effects.length - 20} more` : ''}
            </dd>
          </>
        )}
      </dl>
      <Arguments point={point} args={sp.args} i={i} />
      <Bytes t={t} point={point} text={sp.bytes.get(i)} length={0} />
    </>
  );
}

function Jump({ t, i }: { t: Trace; i: number }) {
  return (
    <button class="link" onClick={() => jumpToSpan(i)}>
      {spanLabel(t, i)} on {t.lanes[t.spans.lane[i]].path}
    </button>
  );
}

function InstantFacts({ t, i }: { t: Trace; i: number }) {
  const r = t.instants;
  const point = t.points[r.point[i]];
  const cause = r.parent[i] > 0 && r.parent[i] < t.byId.length ? t.byId[r.parent[i]] : 0xffffffff;
  return (
    <>
      <h2>{point.name}</h2>
      <dl class="facts">
        <dt>lane</dt>
        <dd>
          {t.lanes[r.lane[i]].path} <small>({hostName(t, r.lane[i])})</small>
        </dd>
        <dt>time</dt>
        <dd>{formatDuration(r.t[i])}</dd>
        <dt>message</dt>
        <Message id={r.msg[i]} />
        {cause !== 0xffffffff && (
          <>
            <dt>cause</dt>
            <dd>
              <Jump t={t} i={cause} />
            </dd>
          </>
        )}
      </dl>
      <Arguments point={point} args={r.args} i={i} />
      <Bytes t={t} point={point} text={r.bytes.get(i)} length={0} />
    </>
  );
}

function PacketFacts({ t, i }: { t: Trace; i: number }) {
  const p = t.packets;
  const point = t.points[p.point[i]];
  const wire = wireOf(t, i);
  return (
    <>
      <h2>Packet {p.tx[i] ? 'sent' : 'received'}</h2>
      <dl class="facts">
        <dt>lane</dt>
        <dd>{t.lanes[p.lane[i]].path}</dd>
        <dt>{p.tx[i] ? 'first bit' : 'last bit'}</dt>
        <dd>{formatDuration(p.t[i])}</dd>
        {wire >= 0 && (
          <>
            <dt>on the wire</dt>
            <dd>
              <Jump t={t} i={wire} />
            </dd>
          </>
        )}
        <dt>frame</dt>
        <dd>{p.len[i]} bytes, without FCS</dd>
        <dt>message</dt>
        <Message id={p.msg[i]} />
      </dl>
      <Bytes t={t} point={{ ...point, bytes: 'frame' }} text={p.bytes.get(i)} length={p.len[i]} />
    </>
  );
}

/** The span of the packet's message that begins when a sent packet does, or ends when a received one does; -1 if none. */
function wireOf(t: Trace, i: number): number {
  const { msg, tx, lane } = t.packets;
  const found = spansOfMessage(t, msg[i]).find((k) => {
    const at = tx[i] ? t.spans.start[k] : t.spans.start[k] + t.spans.dur[k];
    return at === t.packets.t[i] && t.lanes[t.spans.lane[k]].host === t.lanes[lane[i]].host;
  });
  return found ?? -1;
}

function hostName(t: Trace, lane: number): string {
  const h = t.lanes[lane].host;
  return h < 0 ? 'fabric' : (t.header.hosts[h] ?? `host ${h}`);
}

function Bytes({ point, text, length }: { t: Trace; point: Point; text: string | undefined; length: number }) {
  if (text === undefined) return <p class="hint">{point.bytes ? 'The trace carries no raw bytes for this record.' : ''}</p>;
  const found = point.bytes ? decodeBytes(point.bytes, text, length) : null;
  if (!found) return <p class="error">Its raw bytes are no hexadecimal text of a kind that this viewer decodes.</p>;
  return <DecodedBytes bytes={found.bytes} decoded={found.decoded} />;
}

export function DecodedBytes({ bytes, decoded }: { bytes: Uint8Array; decoded: Decoded }) {
  const [lit, setLit] = useState<Field | null>(null);
  const groups = [...new Set(decoded.fields.map((f) => f.group))];
  const shown = Math.min(bytes.length, 512);
  const lines: number[] = [];
  for (let o = 0; o < shown; o += 16) lines.push(o);
  return (
    <>
      <h3>{decoded.title}</h3>
      {decoded.problems.map((p) => (
        <p class="error" key={p}>
          {p}
        </p>
      ))}
      <pre class="hex" aria-label="raw bytes">
        {lines.map((o) => (
          <div key={o}>
            <span class="offset">{o.toString(16).padStart(4, '0')}</span>{' '}
            {Array.from(bytes.subarray(o, Math.min(o + 16, shown)), (v, k) => (
              <span key={k} class={lit && o + k >= lit.at && o + k < lit.at + lit.length ? 'lit' : ''}>
                {v.toString(16).padStart(2, '0')}
                {k === 7 ? '  ' : ' '}
              </span>
            ))}
          </div>
        ))}
        {bytes.length > shown ? `… ${bytes.length - shown} more bytes` : ''}
      </pre>
      <table class="fields">
        {groups.map((g) => (
          <tbody key={g}>
            <tr>
              <th colSpan={3} scope="rowgroup">
                {g}
              </th>
            </tr>
            {decoded.fields
              .filter((f) => f.group === g)
              .map((f) => (
                <tr
                  key={`${f.name}${f.at}`}
                  tabIndex={0}
                  onMouseEnter={() => setLit(f)}
                  onFocus={() => setLit(f)}
                  onMouseLeave={() => setLit(null)}
                  onBlur={() => setLit(null)}
                >
                  <td>{f.name}</td>
                  <td>
                    {f.value}
                    {f.note ? <small> {f.note}</small> : null}
                  </td>
                  <td class="num">
                    {f.at}
                    {f.length > 1 ? `–${f.at + f.length - 1}` : ''}
                  </td>
                </tr>
              ))}
          </tbody>
        ))}
      </table>
    </>
  );
}
