// The state of all queues, read by one statement. Alarms, /metrics and /v1/stats are computed from it.
import type { Json } from "./job.ts";

export const roundKinds = ["drain", "nudge", "reap", "watch"] as const;
export type RoundKind = (typeof roundKinds)[number];

export interface Snapshot {
  /** When the snapshot was taken. All times here are by the database's clock. */
  at: Date;
  /** One for each queue, type and priority that ever had a job. */
  groups: readonly Group[];
  /**
   * What happened in the requested windows, by queue and type. Each entry is the sum from the start of one window to the
   * start of the next shorter one. So the sum of a window is the sum of all entries from its start on.
   */
  minutes: readonly Minute[];
  /** The newest round of each kind. A kind that never ran is left out. */
  rounds: readonly LastRound[];
  /** The last few rounds of each kind, newest first, with all their fields. */
  recentRounds: readonly RecentRound[];
  /** When the first round of any kind was recorded. The grace time of alarm rules starts then. */
  runningSince: Date | null;
  openBreakers: readonly { type: string; openedAt: Date }[];
  /** Drains and pullers that hold a live lease or are registered. */
  liveWorkers: number;
  /** How long ago the oldest lease ran out that no reap round has ended yet. 0 if there is none. */
  expiredLeaseSeconds: number;
  /** What has kept Postgres from removing dead rows for the longest time. Null if there is nothing. */
  oldestTransaction: OldestTransaction | null;
  tables: readonly TableHealth[];
  /** The median time of a claim in the drains of the last minutes. Null if none claimed. */
  claimMs: number | null;
  /** Enqueues over HTTP in the last hour, by minute, that got a 5xx or were refused because the queue was full. */
  enqueueErrors: readonly { minute: Date; errors: number }[];
  /** Wrong rows that the inspection of the reap rounds found and that nobody has repaired yet. */
  impossibleStates: ImpossibleStates;
  /** One for each queue that ever had a partition key. */
  blockedKeys: readonly BlockedQueue[];
  /** The running flows that made no progress for the longest time, at most 100, the longest first. */
  idleFlows: readonly IdleFlow[];
}

/** How long jobs waited and were processed, up to the last fold of the ledger. */
export interface Durations {
  /** Empty buckets are left out. */
  buckets: readonly DurationBucket[];
  /** The upper bounds of the buckets in seconds. The last bucket has none. */
  bounds: readonly number[];
}

export interface Group extends Counts {
  queue: string;
  type: string;
  priority: number;
  /** How long the oldest due job has been waiting. Null if no job is due. */
  oldestDueSeconds: number | null;
}

/** enqueued = blocked + pending + leased + completed + dead + discarded + cancelled. */
export interface Counts {
  enqueued: number;
  /** Jobs that wait for others, for a signal or for a time. */
  blocked: number;
  pending: number;
  /** The pending jobs that are not due yet. */
  scheduled: number;
  leased: number;
  completed: number;
  dead: number;
  discarded: number;
  cancelled: number;
  /** Counts attempts, not jobs. */
  failed: number;
  /** All jobs that ever expired. They also count as dead until they are replayed or discarded. */
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
  /** The change in the number of due jobs. */
  ready: number;
}

export interface DurationBucket {
  queue: string;
  type: string;
  /** Waiting is from when a job was due to its first claim. Processing is from the claim of its last attempt to its completion. */
  measure: "waiting" | "processing";
  bucket: number;
  jobs: number;
  /** The sum over these jobs. */
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
  /** Only for reap and watch rounds: what each step did, and how long it took. */
  steps: Record<string, Json> | null;
}

export interface OldestTransaction {
  seconds: number;
  /** A session, a prepared transaction, a replication slot, or a standby with hot_standby_feedback. */
  source: "session" | "prepared" | "slot" | "standby";
}

export interface ImpossibleStates {
  /** At most 100 are counted. */
  count: number;
  /** The first one that was found. Null if there is none. */
  example: ImpossibleState | null;
}

export interface ImpossibleState {
  kind: "job" | "lease" | "done";
  /** The id of the job, the key of the lease, or the highest id in the row of `done`. */
  id: string;
  /** What is wrong, such as "is in ready and lease at once". */
  what: string;
}

/** The partition keys of a queue that stand still, because a job of theirs is dead. */
export interface BlockedQueue {
  queue: string;
  /** At most 10,000 are counted for each type and priority. */
  keys: number;
  /** When the dead job died that has blocked its key for the longest time. Null if no key is blocked. */
  since: Date | null;
  /** That job. */
  jobId: string | null;
}

export interface IdleFlow {
  flowId: string;
  /** When one of its jobs last moved. A reap round notes it, so it may be late by one round. */
  since: Date;
}

export interface TableHealth {
  table: string;
  deadRows: number;
  vacuumedAt: Date | null;
}
