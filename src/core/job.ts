// What a job is, and the states and outcomes that it can have. All other code uses these words.
import type { JobBlockers } from "./blocker-row.ts";
import type { JobOptions } from "./job-options.ts";

export const jobStatuses = [
  "pending",
  "blocked",
  "processing",
  "completed",
  "dead",
  "discarded",
  "cancelled",
] as const;
export type JobStatus = (typeof jobStatuses)[number];

export const deadReasons = ["exhausted", "fatal", "expired", "abandoned", "blocker"] as const;
export type DeadReason = (typeof deadReasons)[number];

/** What happens to a job if one that it waits for does not complete. */
export const onBlockerDead = ["die", "run"] as const;
export type OnBlockerDead = (typeof onBlockerDead)[number];

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Payload = { [key: string]: Json };

/** What a producer asks for. */
export interface NewJob extends JobOptions {
  type: string;
  payload: Payload;
}

export interface JobError {
  attempt: number;
  at: string;
  message: string;
  /** When the attempt began. Only in the answer for one job. */
  started_at?: string;
  /** Who ran it: a drain or a puller. Null if it gave no name. Only in the answer for one job. */
  worker?: string | null;
  /** Only in the answer for one job, and only if the handler threw an error that has one. */
  stack?: string | null;
  causes?: ErrorCause[];
}

export interface ErrorCause {
  message: string;
  stack: string | null;
}

/** What is stored of a thrown error beside its message. */
export interface ErrorDetail {
  stack: string | null;
  /** Its causes, nearest first. */
  causes: ErrorCause[];
}

export interface Job {
  id: string;
  type: string;
  queue: string;
  status: JobStatus;
  priority: number;
  payload: Payload;
  attempts: number;
  maxAttempts: number;
  createdAt: Date;
  scheduledAt: Date;
  startedAt: Date | null;
  completedAt: Date | null;
  /** Who runs it, or who completed it: a drain or a puller. Null in every other state, and if it gave no name. */
  worker: string | null;
  expiresAt: Date;
  errors: JobError[];
  deadReason: DeadReason | null;
  partitionKey: string | null;
  /** A stable hash of the partition key: 0 to 359. */
  partitionBucket: number | null;
  fairKey: string | null;
  tags: string[];
  idempotencyKey: string | null;
  traceparent: string | null;
  output: Json;
  /** The first job of its chain, and its place in it. Null if it neither continues a job nor is waited for. */
  chainId: string | null;
  chainIndex: number | null;
  flowId: string | null;
  /** For the reason `blocker`: the job whose end has killed it. */
  culprit: string | null;
  /** Of a cancelled job: the job that has replaced it. */
  supersededBy: string | null;
  /** The schedule that has made it. */
  schedule: JobSchedule | null;
}

/** Which slot of which schedule has made a job. */
export interface JobSchedule {
  name: string;
  /** An ISO time. Of a job that somebody ran by hand: when that was. */
  slot: string;
  /** The slot was fired more than 90 seconds late. */
  missed: boolean;
}

/** What durable steps have returned, by name. Of a sleep or a wait: when it is over, in the database's milliseconds. */
export type StepValues = { [name: string]: Json };
/** A step to be stored: what it returned and how long that took, or how long it sleeps. */
export type NewStep =
  | { name: string; value: Json; took_ms?: number | undefined }
  | { name: string; seconds: number };

/** A claimed job and its lease key. Every later write must show the key. */
export interface LeaseRef {
  id: string;
  leaseKey: string;
}

/** Rises with every claim of a job. A bigint as text: the first 64 bits of the lease's key. */
export function generationOf(leaseKey: string): string {
  return BigInt(`0x${leaseKey.replaceAll("-", "").slice(0, 16)}`).toString();
}

export interface ClaimedJob extends LeaseRef {
  type: string;
  payload: Payload;
  attempt: number;
  maxAttempts: number;
  /** How often its lease ran out. The job itself may have killed its worker. */
  abandonments: number;
  leaseExpiresAt: Date;
  priority: number;
  createdAt: Date;
  partitionKey: string | null;
  fairKey: string | null;
  /** The same for all jobs of one run. Null if the job has no partition key. A bigint as text. */
  runKey: string | null;
  /** Others may start when this job, or its run, has been settled: the next one of its key, or jobs that wait for it. */
  mayRelease: boolean;
  /** Jobs of any queue may wait for its end. */
  isLinked: boolean;
  traceparent: string | null;
  tags: string[];
  errors: JobError[];
  /** The jobs that it waited for, by slot. Null if they are too many for the answer: ask for them. */
  blockers: JobBlockers | null;
  schedule: JobSchedule | null;
  /** An open breaker let it through, to see whether its type works again. */
  isProbe: boolean;
  /** A probe, or one of the few jobs that run first after a breaker has closed. The next ones wait for them. */
  isTrial: boolean;
  /** The steps that were stored by earlier claims, and the database's time. Null: not read yet. */
  stored: { steps: StepValues; nowMs: number } | null;
}

/**
 * How one attempt ended. The database compares a `retry` with the job's maximum of attempts. A retry without a time waits
 * for the type's backoff.
 *
 * `uses` says how many attempts this claim counts as, if it is not the usual number. A reconciled job's run and the check
 * after it are two claims and one attempt: the run is a snooze that uses one, and the check uses none.
 */
export type Outcome =
  | { kind: "complete"; output: Json; next?: NewJob; uses?: 0 }
  | {
      kind: "retry";
      message: string;
      detail?: ErrorDetail;
      retryInSeconds?: number | undefined;
      uses?: 0;
    }
  | { kind: "bury"; message: string; detail?: ErrorDetail; uses?: 0 }
  | { kind: "snooze"; retryInSeconds: number; uses?: 1 }
  | { kind: "release" }
  | { kind: "suspend"; wait: Wait };

/** What a suspended job waits for: a signal, or the end of all jobs, for so many seconds at most. */
export interface Wait {
  seconds?: number | undefined;
  signal?: { name: string; key: string } | undefined;
  jobs?: readonly string[] | undefined;
}

export interface Settlement {
  job: LeaseRef;
  outcome: Outcome;
}

/** When a job was created. A UUID of version 7 starts with milliseconds since 1970. */
export function timeOfId(id: string): Date {
  return new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16));
}
