// Groups of dead letters, and runs over them.
import type { DeadReason, Payload } from "./job.ts";

/** What is left out matches everything. */
export interface DeadLetterFilter {
  type?: string | undefined;
  reason?: DeadReason | undefined;
  /** 16 hexadecimal digits. */
  fingerprint?: string | undefined;
  queue?: string | undefined;
  /** Only jobs that died by then. */
  until?: Date | undefined;
}

export interface DeadGroup {
  type: string;
  reason: DeadReason;
  fingerprint: string;
  count: number;
  /** The first and the last death since the group was last empty. */
  firstAt: Date;
  lastAt: Date;
  /** The job that died last, and its error. Null: it did not die of an error. */
  newestId: string;
  error: string | null;
  /** What the errors of the group have in common. */
  pattern: string | null;
  /** The deaths of the last 24 hours, oldest first. The last one is the current hour. */
  hours: number[];
}

export const runActions = ["replay", "discard"] as const;
export type RunAction = (typeof runActions)[number];
export const runStates = ["running", "done", "stopped"] as const;
export type RunState = (typeof runStates)[number];

export interface NewDeadRun extends DeadLetterFilter {
  action: RunAction;
  maxJobs?: number | undefined;
  perMinute?: number | undefined;
  /** A JSON merge patch of each payload. */
  patch?: Payload | undefined;
  note?: string | undefined;
}

export interface DeadRun {
  id: string;
  action: RunAction;
  type: string | null;
  reason: DeadReason | null;
  fingerprint: string | null;
  queue: string | null;
  until: Date;
  maxJobs: number | null;
  perMinute: number | null;
  patch: Payload | null;
  note: string | null;
  actor: string;
  state: RunState;
  /** How many matched when it was started. */
  matched: number;
  done: number;
  skipped: number;
  /** Why, for the first of them. */
  skips: Skip[];
  remaining: number;
  startedAt: Date;
  endedAt: Date | null;
  /** Only of a run that was looked up by its id. Null: it has replayed nothing. */
  outcomes?: RunOutcomes | null;
}

/** What has become of the first jobs that a run has replayed. */
export interface RunOutcomes {
  /** How many were looked at. */
  jobs: number;
  completed: number;
  /** Again. */
  dead: number;
  waiting: number;
  processing: number;
  /** Cancelled, discarded, or no longer stored. */
  other: number;
}

export interface Skip {
  jobId: string;
  reason: string;
}
