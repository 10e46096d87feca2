// SPDX-License-Identifier: Apache-2.0
// Raw bytes and the fields decoded from them, beside each other where there is room. Pointing at a field lights its bytes, pointing at
// a byte lights its field; a click keeps it lit and brings the other one into view.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Decoded, Field } from '../decode/bytes';

const kPerLine = 16;
const kMost = 4096;

/** The narrowest field that holds byte `at`: flags lie within words. */
export function fieldAt(fields: Field[], at: number): Field | null {
  let best: Field | null = null;
  for (const f of fields) {
    if (at >= f.at && at < f.at + f.length && (!best || f.length < best.length)) best = f;
  }
  return best;
}

export function ByteView({ bytes, decoded }: { bytes: Uint8Array; decoded: Decoded }) {
  const [hover, setHover] = useState<Field | null>(null);
  const [kept, setKept] = useState<Field | null>(null);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => setKept(null), [bytes]);
  useEffect(() => {
    if (!kept) return;
    for (const lit of ['.fields tr.lit', '.hex .lit']) box.current?.querySelector(lit)?.scrollIntoView({ block: 'nearest' });
  }, [kept]);
  const lit = hover ?? kept;
  const keep = (f: Field | null) => setKept(kept === f ? null : f);
  return (
    <>
      <h3>{decoded.title}</h3>
      {decoded.problems.map((p) => (
        <p class="error" key={p}>
          {p}
        </p>
      ))}
      {decoded.cut && (
        <p class="hint">The trace holds the first {bytes.length} bytes of it (rdmasim run --trace-bytes sets how many).</p>
      )}
      <div class="bytes" ref={box}>
        <Hex bytes={bytes} fields={decoded.fields} lit={lit} point={setHover} keep={keep} />
        <Fields fields={decoded.fields} lit={lit} point={setHover} keep={keep} />
      </div>
    </>
  );
}

interface Lit {
  fields: Field[];
  lit: Field | null;
  point: (f: Field | null) => void;
  keep: (f: Field | null) => void;
}

function Hex({ bytes, fields, lit, point, keep }: Lit & { bytes: Uint8Array }) {
  const shown = Math.min(bytes.length, kMost);
  const groups = [...new Set(fields.map((f) => f.group))];
  const lines: number[] = [];
  for (let o = 0; o < shown; o += kPerLine) lines.push(o);
  const byteOf = (e: Event) => {
    const at = (e.target as HTMLElement).dataset.at;
    return at === undefined ? null : fieldAt(fields, Number(at));
  };
  return (
    <pre
      class="hex"
      aria-label={`${bytes.length} raw bytes`}
      onMouseOver={(e) => point(byteOf(e))}
      onMouseLeave={() => point(null)}
      onClick={(e) => keep(byteOf(e))}
    >
      {lines.map((o) => (
        <div key={o}>
          <span class="offset">{o.toString(16).padStart(4, '0')}</span>
          {Array.from(bytes.subarray(o, Math.min(o + kPerLine, shown)), (v, k) => {
            const f = fieldAt(fields, o + k);
            const on = lit !== null && o + k >= lit.at && o + k < lit.at + lit.length;
            const shade = f && groups.indexOf(f.group) % 2 === 1 ? ' odd' : '';
            return (
              <span key={k} data-at={o + k} class={`byte${k === 8 ? ' half' : ''}${shade}${on ? ' lit' : ''}`}>
                {v.toString(16).padStart(2, '0')}
              </span>
            );
          })}
        </div>
      ))}
      {bytes.length > shown ? `… ${bytes.length - shown} more bytes` : ''}
    </pre>
  );
}

function Fields({ fields, lit, point, keep }: Lit) {
  const groups = [...new Set(fields.map((f) => f.group))];
  return (
    <table class="fields">
      <thead class="sr">
        <tr>
          <th scope="col">field</th>
          <th scope="col">value</th>
          <th scope="col">bytes</th>
        </tr>
      </thead>
      {groups.map((g, i) => (
        <tbody key={g}>
          <tr>
            <th colSpan={3} scope="rowgroup" class={i % 2 === 1 ? 'odd' : ''}>
              {g}
            </th>
          </tr>
          {fields
            .filter((f) => f.group === g)
            .map((f) => (
              <tr
                key={`${f.name}${f.at}`}
                tabIndex={0}
                class={f === lit ? 'lit' : ''}
                onMouseEnter={() => point(f)}
                onFocus={() => point(f)}
                onMouseLeave={() => point(null)}
                onBlur={() => point(null)}
                onClick={() => keep(f)}
                onKeyDown={(e) => {
                  if (e.key === 'Enter') keep(f);
                }}
              >
                <td>{f.name}</td>
                <td>
                  {f.value}
                  {f.note ? <small> {f.note}</small> : null}
                </td>
                <td class="num" title="offset of its bytes">
                  {f.at}
                  {f.length > 1 ? `–${f.at + f.length - 1}` : ''}
                </td>
              </tr>
            ))}
        </tbody>
      ))}
    </table>
  );
}
