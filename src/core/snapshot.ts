// A look at the whole queue in one statement: all that alarms, /metrics, /health and /v1/stats are made from.

import type { Json } from "./job.ts";

export const roundKinds = ["drain", "nudge", "reap", "watch"] as const;
export type RoundKind = (typeof roundKinds)[number];

export interface Snapshot {
  /** By the database's clock, as every time in here. */
  at: Date;
  /** One for each queue, type and priority that ever had a job. */
  groups: readonly Group[];
  /**
   * By queue and type, within the windows that were asked for: what lies between the starts of two of them is one sum,
   * under the older start. So a window is the sum of all entries from its start on.
   */
  minutes: readonly Minute[];
  /** The newest of each kind; a kind that never ran is left out. */
  rounds: readonly LastRound[];
  /** The latest few of each kind, newest first, with all that is known of them. */
  recentRounds: readonly RecentRound[];
  /** When the first round of any kind was recorded: what grace at the start is counted from. */
  runningSince: Date | null;
  openBreakers: readonly { type: string; openedAt: Date }[];
  /** Drains and pullers that hold a live lease. */
  liveWorkers: number;
  /** How long the longest expired lease has been waiting for the reaper; 0: none is. */
  expiredLeaseSeconds: number;
  /** What keeps dead rows alive the longest; null: nothing does. */
  oldestTransaction: OldestTransaction | null;
  tables: readonly TableHealth[];
  /** The median time of a claim, as the drains of the last minutes saw it; null: none claimed. */
  claimMs: number | null;
  /** Enqueues over HTTP that were answered with a 5xx or refused for depth, in the last hour by minute. */
  enqueueErrors: readonly { minute: Date; errors: number }[];
  /** What the reaper's inspection found and nobody has repaired yet. */
  impossibleStates: ImpossibleStates;
}

/** How long jobs waited and were processed, as of the last fold of the ledger. */
export interface Durations {
  /** Empty ones are left out. */
  buckets: readonly DurationBucket[];
  /** Their upper ends in seconds, without the last one, which has none. */
  bounds: readonly number[];
}

export interface Group extends Counts {
  queue: string;
  type: string;
  priority: number;
  /** How long the oldest due job has been waiting; null: none is due. */
  oldestDueSeconds: number | null;
}

/** enqueued = pending + leased + completed + dead + discarded + cancelled. */
export interface Counts {
  enqueued: number;
  pending: number;
  /** Those of the pending that were put off to a later time. */
  scheduled: number;
  leased: number;
  completed: number;
  dead: number;
  discarded: number;
  cancelled: number;
  /** Attempts, not jobs. */
  failed: number;
  /** Jobs that were buried because their time had passed; they are among the dead until replayed or discarded. */
  expired: number;
}

export interface Minute {
  minute: Date;
  queue: string;
  type: string;
  enqueued: number;
  completed: number;
  failed: number;
  expired: number;
  /** By how many more or fewer jobs were due and waiting after it than before. */
  ready: number;
}

export interface DurationBucket {
  queue: string;
  type: string;
  /** From when a job was due to its first claim; from the claim of the attempt that completed it to its settlement. */
  measure: "waiting" | "processing";
  bucket: number;
  jobs: number;
  /** Of all of them together. */
  seconds: number;
}

export interface LastRound {
  kind: RoundKind;
  endedAt: Date;
  hasFailed: boolean;
}

export interface RecentRound {
  kind: RoundKind;
  queue: string | null;
  startedAt: Date;
  endedAt: Date;
  claimed: number;
  completed: number;
  failed: number;
  released: number;
  lost: number;
  reason: string;
  message: string | null;
  /** Of a reap round: what each step did, and how long it took. */
  steps: Record<string, Json> | null;
}

export interface OldestTransaction {
  seconds: number;
  /** A session here, a prepared transaction, a replication slot, or a standby that feeds back. */
  source: "session" | "prepared" | "slot" | "standby";
}

export interface ImpossibleStates {
  /** 100: maybe more. */
  count: number;
  /** The one that was found first; null: there is none. */
  example: ImpossibleState | null;
}

export interface ImpossibleState {
  kind: "job" | "lease" | "done";
  /** Of the job; the key of the lease; the highest id of the row of `done`. */
  id: string;
  /** As in "is in ready and lease at once". */
  what: string;
}

export interface TableHealth {
  table: string;
  deadRows: number;
  vacuumedAt: Date | null;
}
