// SPDX-License-Identifier: Apache-2.0
// Everything about the selected record: its times, its cause and effects, its arguments by name, and its raw bytes with the fields in
// them, if the trace carries bytes.
import { useMemo } from 'preact/hooks';
import { decodeBytes } from '../decode/index';
import { formatArgument, valueName } from '../decode/values';
import { bytesAt } from '../model/byte_store';
import { causeOf, effectsOf, spansOfMessage } from '../model/lifeline';
import { formatDuration } from '../model/time';
import type { Point, Trace } from '../model/types';
import { spanLabel } from '../view/draw';
import { jumpToMark, jumpToSpan, selectMessage } from './actions';
import { ByteView } from './byte_view';
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
      <Bytes t={t} point={point} position={sp.bytes[i]} />
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
      <Bytes t={t} point={point} position={r.bytes[i]} />
    </>
  );
}

function PacketFacts({ t, i }: { t: Trace; i: number }) {
  const p = t.packets;
  const point = t.points[p.point[i]];
  const wire = wireOf(t, i);
  const twin = useMemo(() => twinOf(t, i), [t, i]);
  // The bytes are recorded where the frame was sent.
  const sent = p.bytes[i] === 0 ? twin : i;
  const frames = useMemo((): Point => ({ ...point, bytes: 'frame' }), [point]);
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
        {twin >= 0 && (
          <>
            <dt>other end</dt>
            <dd>
              <button class="link" onClick={() => jumpToMark('packet', twin)}>
                {p.tx[twin] ? 'sent' : 'received'} at {formatDuration(p.t[twin])}
              </button>
            </dd>
          </>
        )}
        {twin < 0 && p.tx[i] !== 0 && p.frame[i] !== 0 && (
          <>
            <dt>other end</dt>
            <dd class="error">did not arrive in this trace</dd>
          </>
        )}
        <dt>frame</dt>
        <dd>
          {p.len[i]} bytes, without FCS{p.frame[i] > 0 ? <small> packet id {p.frame[i]}, as in the pcapng file</small> : null}
        </dd>
        <dt>message</dt>
        <Message id={p.msg[i]} />
      </dl>
      <Bytes t={t} point={frames} position={p.bytes[sent >= 0 ? sent : i]} length={p.len[i]} />
    </>
  );
}

/** The record of the same frame at the other end of the cable; -1 if none. */
function twinOf(t: Trace, i: number): number {
  const { frame, tx, n } = t.packets;
  if (frame[i] === 0) return -1;
  for (let k = 0; k < n; ++k) if (frame[k] === frame[i] && tx[k] !== tx[i]) return k;
  return -1;
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

function Bytes({ t, point, position, length = 0 }: { t: Trace; point: Point; position: number; length?: number }) {
  const bytes = bytesAt(t.pieces, position);
  const decoded = useMemo(() => (bytes && point.bytes ? decodeBytes(point.bytes, bytes, length) : null), [bytes, point, length]);
  if (!bytes) return point.bytes ? <p class="hint">The trace carries no raw bytes for this record.</p> : null;
  return <ByteView bytes={bytes} decoded={decoded ?? { title: 'raw bytes', fields: [], problems: [], cut: false }} />;
}
