// What happened in a simulation: every attempt of every job, in the order in which this process saw it.
import type { ClaimedJob } from "../../src/core/job.ts";
import { generationOf } from "../../src/core/job.ts";

export interface Moment {
  /** Rises with every recorded event. */
  order: number;
  /** By the clock of the machine, which is the database's clock too. */
  ms: number;
}

export interface Attempt {
  worker: string;
  key: string;
  /** The job is the nth of its key, from 0 on. */
  place: number;
  generation: bigint;
  leaseExpiresMs: number;
  startedAt: Moment;
  /** Null if the worker died meanwhile. */
  endedAt: Moment | null;
  outcome: "complete" | "retry" | null;
  /** Whether the database accepted the outcome. Null if it was never sent. */
  isApplied: boolean | null;
}

export interface History {
  readonly attempts: Attempt[];
  /** How many jobs of each key were enqueued. */
  readonly enqueued: Map<string, number>;
  now(): Moment;
}

export function createHistory(): History {
  let order = 0;
  return { attempts: [], enqueued: new Map(), now: () => ({ order: order++, ms: Date.now() }) };
}

export function startAttempt(history: History, worker: string, job: ClaimedJob): Attempt {
  const attempt: Attempt = {
    worker,
    key: job.partitionKey ?? "",
    place: Number(job.payload.place),
    generation: BigInt(generationOf(job.leaseKey)),
    leaseExpiresMs: job.leaseExpiresAt.getTime(),
    startedAt: history.now(),
    endedAt: null,
    outcome: null,
    isApplied: null,
  };
  history.attempts.push(attempt);
  return attempt;
}

export function isCompletion(attempt: Attempt): boolean {
  return attempt.outcome === "complete" && attempt.isApplied === true;
}
