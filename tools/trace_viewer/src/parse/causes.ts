// SPDX-License-Identifier: Apache-2.0
// Wins the causes of spans back from flows: a span with flow_in continues the chain of its bind_id from the span before it on that
// chain; a fork names the thread and start of the cause. Forks are looked up at the end, when all spans are known.
import type { Builder } from '../model/builder';
import { groupBy, lowerBound } from '../model/sort';

export class CauseTable {
  /** Last span of each chain. */
  private tail = new Uint32Array(1 << 16);
  private readonly threads = new Map<number, number>();
  private threadOf = new Uint32Array(1 << 16);
  private n = 0;
  private readonly forks: { child: number; tid: number; t: number }[] = [];

  /** Notes the span that comes next; returns its cause by its chain, 0 if it has none. */
  span(id: number, tid: number, chain: number, continues: boolean): number {
    let thread = this.threads.get(tid);
    if (thread === undefined) {
      thread = this.threads.size;
      this.threads.set(tid, thread);
    }
    if (this.n === this.threadOf.length) this.threadOf = grown(this.threadOf, this.n + 1);
    this.threadOf[this.n++] = thread;
    if (chain <= 0 || chain > 1 << 27) return 0;
    if (chain >= this.tail.length) this.tail = grown(this.tail, chain + 1);
    const cause = continues ? this.tail[chain] : 0;
    this.tail[chain] = id;
    return cause;
  }

  fork(child: number, tid: number, t: number): void {
    this.forks.push({ child, tid, t });
  }

  resolve(spans: Builder['spans']): void {
    if (this.forks.length === 0) return;
    const { order, offset } = groupBy(this.threadOf, this.n, this.threads.size);
    const start = spans.col.start as Float64Array;
    const sorted = new Float64Array(this.n);
    let most = 0;
    for (let i = 0; i < this.n; ++i) {
      sorted[i] = start[order[i]];
      most = Math.max(most, spans.col.id[i]);
    }
    const indexOf = new Uint32Array(most + 1);
    for (let i = 0; i < this.n; ++i) indexOf[spans.col.id[i]] = i + 1;
    for (const f of this.forks) {
      const thread = this.threads.get(f.tid);
      const child = f.child <= most ? indexOf[f.child] : 0;
      if (thread === undefined || child === 0) continue;
      // Of several that start then, the last one before the child.
      for (
        let i = lowerBound(sorted, f.t, offset[thread], offset[thread + 1]);
        i < offset[thread + 1] && sorted[i] === f.t;
        ++i
      ) {
        if (order[i] < child - 1) spans.col.parent[child - 1] = spans.col.id[order[i]];
      }
    }
  }
}

function grown(a: Uint32Array, atLeast: number): Uint32Array<ArrayBuffer> {
  const b = new Uint32Array(Math.max(atLeast, a.length * 2));
  b.set(a);
  return b;
}
