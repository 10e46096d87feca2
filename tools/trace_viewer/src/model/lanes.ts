// SPDX-License-Identifier: Apache-2.0
// The order of lanes on the screen: the first host from the application down to the HCA, the fabric, then its peers from the HCA
// up to the application, so that a message runs down, across and up.
import type { Lane, Trace } from './types';

/** From the application to the wire. A component that is not listed stands before the HCA. */
const kOrder = ['app', 'thread', 'verbs', 'program', 'cpu', 'kernel', 'memory', 'pcie', 'iommu', 'other', 'hca'];

/** A lane's path without its host. */
export function shortPath(lane: Lane, hosts: string[]): string {
  const host = hosts[lane.host];
  if (host && lane.path.startsWith(`${host}.`)) return lane.path.slice(host.length + 1);
  return lane.host < 0 && lane.path.startsWith('fabric.') ? lane.path.slice(7) : lane.path;
}

/** "cpu" of host0.cpu3.wc, "fabric" of any lane of no host. */
export function componentOf(lane: Lane, hosts: string[]): string {
  if (lane.host < 0) return 'fabric';
  return shortPath(lane, hosts).split('.')[0].replace(/\d+$/, '');
}

function rank(lane: Lane, hosts: string[]): number {
  const at = kOrder.indexOf(componentOf(lane, hosts));
  return at < 0 ? kOrder.indexOf('other') : at;
}

export interface LaneGroup {
  /** Host index, -1 for the fabric. */
  host: number;
  name: string;
  lanes: number[];
}

/** Lanes in the given order, but what belongs to a lane by its path (pcie.up.wire_bytes to pcie.up) right below it. */
function treeOrder(lanes: Lane[], order: (a: Lane, b: Lane) => number): number[] {
  const byPath = new Map(lanes.map((l) => [l.path, l]));
  const below = new Map<Lane | undefined, Lane[]>();
  for (const l of lanes) {
    let path = l.path;
    let parent: Lane | undefined;
    while (!parent && path.includes('.')) parent = byPath.get((path = path.slice(0, path.lastIndexOf('.'))));
    const list = below.get(parent);
    if (list) list.push(l);
    else below.set(parent, [l]);
  }
  const out: number[] = [];
  const emit = (l: Lane) => {
    out.push(l.id);
    (below.get(l) ?? []).sort((a, b) => a.id - b.id).forEach(emit);
  };
  (below.get(undefined) ?? []).sort(order).forEach(emit);
  return out;
}

/** Lanes that `keep` admits, group after group. */
export function orderLanes(trace: Trace, keep: (lane: number) => boolean): LaneGroup[] {
  const { hosts } = trace.header;
  const numbers = [...new Set(trace.lanes.map((l) => l.host))].sort((a, b) => a - b);
  const groups: LaneGroup[] = [];
  const group = (host: number, mirrored: boolean) => {
    const lanes = treeOrder(
      trace.lanes.filter((l) => l.host === host && keep(l.id)),
      (a, b) => (mirrored ? -1 : 1) * (rank(a, hosts) - rank(b, hosts) || a.id - b.id),
    );
    if (lanes.length > 0) groups.push({ host, name: host < 0 ? 'fabric' : (hosts[host] ?? `host ${host}`), lanes });
  };
  const real = numbers.filter((h) => h >= 0);
  if (real.length > 0) group(real[0], false);
  group(-1, false);
  for (const h of real.slice(1)) group(h, true);
  return groups;
}

/** Lanes that hold any record. */
export function usedLanes(trace: Trace): Uint8Array {
  const used = new Uint8Array(trace.lanes.length);
  for (let r = 0; r < trace.rows.n; ++r) used[trace.rows.lane[r]] = 1;
  for (let l = 0; l < trace.lanes.length; ++l) {
    if (trace.instantOffset[l + 1] > trace.instantOffset[l] || trace.packetOffset[l + 1] > trace.packetOffset[l]) used[l] = 1;
  }
  for (const s of [...trace.counters.series, ...trace.states.series]) used[s.lane] = 1;
  return used;
}

/** Lanes that hold a span, instant or packet of message `id`. */
export function lanesOfMessage(trace: Trace, id: number): Set<number> {
  const lanes = new Set<number>();
  const add = (csr: Trace['spansOf'], lane: Uint32Array) => {
    if (id + 1 >= csr.offset.length) return;
    for (let k = csr.offset[id]; k < csr.offset[id + 1]; ++k) lanes.add(lane[csr.list[k]]);
  };
  add(trace.spansOf, trace.spans.lane);
  add(trace.instantsOf, trace.instants.lane);
  add(trace.packetsOf, trace.packets.lane);
  return lanes;
}
