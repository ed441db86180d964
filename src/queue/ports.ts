// The ports: everything that src/queue needs from outside. The code in src/queue and Sluice's own kinds of jobs use the
// database, the clock and the network only through them. A user's handler is free to do anything.
import type { JobBlockers } from "../core/blocker-row.ts";
import type { Fault } from "../core/errors.ts";
import type { JobError, Json, Outcome, Payload } from "../core/job.ts";
import type { QueuePolicy } from "../core/key-policy.ts";
import type { Next } from "../core/next.ts";
import type { Backoff } from "../core/policy/backoff.ts";
import type { NewSchedule } from "../core/schedule.ts";
import type { Statement } from "../core/sql/statement.ts";
import type { Connections } from "./outgoing/connections.ts";
import type { Step } from "./steps/step.ts";

/**
 * Runs a statement and returns its decoded answer. Each statement is a transaction of its own, because there are no
 * sessions over HTTP. Rejects with a DatabaseErrorCode if the database is unreachable or cannot work now. Any other error
 * means that the database refused the statement.
 */
export interface Database {
  run<T>(statement: Statement<T>, options?: RunOptions): Promise<T>;
}

export interface RunOptions {
  /** Postgres itself stops the statement after this time, with the SQLSTATE 57014. Default: no such limit. */
  limitMs?: number;
}

export interface Clock {
  nowMs(): number;
  sleep(ms: number): Promise<void>;
  /** Calls `run` after that time. The returned function cancels the timer. */
  setTimer(ms: number, run: () => void): () => void;
}

/** A number in [0, 1). */
export type Random = () => number;

export interface Log {
  /** Left out unless the deployment asks for it: what happens too often to be logged always. */
  debug?(event: string, fields?: Record<string, unknown>): void;
  info(event: string, fields?: Record<string, unknown>): void;
  warn(event: string, fields?: Record<string, unknown>): void;
  error(event: string, fields?: Record<string, unknown>): void;
}

export type OutgoingRequest = {
  method: "GET" | "POST";
  url: string;
  headers?: Record<string, string>;
  body?: string;
  /** A successful answer of JSON is read if it is no larger than this. Default 0. */
  maxJsonBytes?: number;
} & ({ timeoutMs: number } | { signal: AbortSignal });

export interface Answer {
  status: number;
  /** From its header Retry-After. */
  retryInSeconds: number | undefined;
  /** The beginning of the text, if the answer was not a success. */
  errorText: string;
  /** The text of a successful answer of JSON, if it was asked for. */
  json?: string;
}

/**
 * Sends to a URL from the deployment's settings or job types, never from a payload. Rejects with a FatalError if the
 * target may not be called, and with any other error if there is no answer.
 */
export interface Sender {
  send(request: OutgoingRequest): Promise<Answer>;
}

export interface HandlerContext<Env = unknown> {
  readonly jobId: string;
  readonly attempt: number;
  readonly maxAttempts: number;
  /** Rises with every claim of the job. Use it to fence your own writes. It is a bigint as text. */
  readonly leaseGeneration: string;
  /** The secret of the lease, for `sluice.complete(job_id, lease_key)`. Do not give it to others. */
  readonly leaseKey: string;
  /** Aborted when the type's time-out has passed, when the lease is lost, or when somebody cancelled the job. */
  readonly signal: AbortSignal;
  readonly traceparent: string | null;
  /** The slot of the schedule that has made the job. Null if no schedule has. */
  readonly schedule: { name: string; slot: Date; missed: boolean } | null;
  /** Adds the job's id, type and attempt to every line. */
  readonly log: Log;
  /** The Worker's bindings. */
  readonly env: Env;
  /** Restarts the type's time-out, within the limit of the invocation. The drain extends the lease by itself. */
  extend(): void;
  /** Durable steps, for handlers of defineJob: docs/durable-steps.md. */
  readonly step: Step;
}

/** A claimed job as it is passed to its handler. */
export interface RunningJob {
  readonly payload: Payload;
  /** The errors of earlier attempts, oldest first. */
  readonly errors: readonly JobError[];
  readonly context: HandlerContext;
  /** The jobs that it waited for, by slot. */
  readonly blockers: JobBlockers;
  /** For Sluice's own kinds of jobs. A pushed job is sent with them. */
  readonly ports: Pick<Ports, "clock" | "sender">;
}

/**
 * How a type's jobs are run: one by one, as a whole batch, or by pullers. A job that needs a connection starts when the
 * invocation has one to spare.
 */
export type Work =
  | { kind: "single"; needsConnection?: true; run(job: RunningJob): Promise<Json | Next> }
  | { kind: "batch"; run(jobs: readonly RunningJob[]): Promise<readonly Outcome[]> }
  | { kind: "pulled" };

export interface TypeLimits {
  /** The most jobs of the type that run at one time, across all drains and pullers. */
  concurrency?: number;
  /** The most jobs of the type that start in any period of that length, across all drains and pullers. */
  rate?: { limit: number; perSeconds: number };
}

/** What src/queue needs to know about a job type. */
export interface JobType {
  readonly type: string;
  readonly queue: string;
  readonly maxAttempts: number;
  readonly backoff: Backoff;
  readonly timeoutSeconds: number;
  readonly leaseSeconds: number;
  readonly limits: TypeLimits;
  /** How many requests one job sends. A drain counts them against its budget. */
  readonly subrequests: number;
  /** The dashboard does not read payloads and outputs of its jobs. */
  readonly hidePayload: boolean;
  readonly work: Work;
  /** The faults of a payload. Empty if it can be enqueued. */
  faultsOf(payload: unknown): Fault[];
}

export interface Registry {
  find(type: string): JobType | undefined;
  all(): readonly JobType[];
  /** The queues that the deployment defines, and those of its types. */
  readonly queues: readonly string[];
  /** Of a queue that the deployment does not define: the defaults. */
  policyOf(queue: string): QueuePolicy;
  /** The types whose handlers have used durable steps in this isolate. Their claims bring the stored steps along. */
  readonly stepTypes: Set<string>;
  /** The schedules in the deployment's code. Null if it leaves them alone. */
  readonly schedules: readonly NewSchedule[] | null;
}

export interface Ports {
  readonly db: Database;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly sender: Sender;
  readonly connections: Connections;
  readonly registry: Registry;
  readonly env: unknown;
  /**
   * Has somebody look for due jobs after that time, and with `upkeep` also do what the reaper has left. Without a clock it does
   * nothing: a cron comes at some time.
   */
  wakeIn(ms: number, options?: { upkeep: boolean }): void;
  readonly hasClock: boolean;
}
