// What the actors of the keys' gate know from outside: what they enqueued and when, what was claimed, and what was settled.
import { type ClaimedJob, generationOf, type LeaseRef, type Outcome } from "../../../src/core/job.ts";

export interface KnownJob {
  id: string;
  queue: string;
  key: string | null;
  /** Just before the enqueue was sent. */
  begunAt: number;
  committedAt: number;
  /** The jobs of one transaction are numbered in the order of its calls. */
  transaction: number;
  index: number;
  /** It becomes ready later than it is enqueued, so its place in its key is not known. */
  isDelayed: boolean;
}

export interface Start {
  leaseKey: string;
  generation: bigint;
  /** Its place in the answer of the claim. */
  place: number;
  /** The first of its run in this claim. The others may go back without having been run. */
  isFirst: boolean;
  answeredAt: number;
}

export interface End {
  leaseKey: string;
  outcome: Outcome["kind"];
  status: string | null;
  sentAt: number;
}

export class History {
  readonly committed = new Map<string, KnownJob>();
  readonly rolledBack = new Set<string>();
  readonly starts = new Map<string, Start[]>();
  /** Only settlements that were applied. */
  readonly ends = new Map<string, End[]>();
  /** When somebody first asked for what may move a job to another place: cancel, replay, discard, or work out of order. */
  readonly touched = new Map<string, number>();
  readonly stale = { sent: 0, applied: 0, restApplied: 0 };

  /** Notes all jobs that a claim has answered with. */
  addStarts(jobs: readonly ClaimedJob[]): void {
    const answeredAt = performance.now();
    for (const [place, { id, leaseKey, runKey }] of jobs.entries()) {
      const isFirst = runKey === null || jobs.findIndex((job) => job.runKey === runKey) === place;
      const generation = BigInt(generationOf(leaseKey));
      append(this.starts, id, { leaseKey, generation, place, isFirst, answeredAt });
    }
  }

  addEnd(id: string, end: End): void {
    append(this.ends, id, end);
  }

  touch(id: string): void {
    if (!this.touched.has(id)) this.touched.set(id, performance.now());
  }

  /** Another claim has taken the job since: the lease is lost for certain. */
  isLost(job: LeaseRef): boolean {
    const generation = BigInt(generationOf(job.leaseKey));
    return (this.starts.get(job.id) ?? []).some((start) => start.generation > generation);
  }
}

function append<T>(lists: Map<string, T[]>, id: string, entry: T): void {
  const list = lists.get(id);
  if (list) list.push(entry);
  else lists.set(id, [entry]);
}
