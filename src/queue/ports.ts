// The whole outside on one screen. All of queue/, and what Sluice itself does for a job, reaches the database, the clock
// and the network through these. A handler of the user's own does what it likes.
import type { JobError, Json, Outcome, Payload } from "../core/job.ts";
import type { Backoff } from "../core/policy/backoff.ts";
import type { Statement } from "../core/sql/statement.ts";

/**
 * Runs a statement and answers with what it decodes to. Over HTTP there are no sessions: a step is one statement. Rejects with a DatabaseErrorCode when
 * the database cannot be reached or cannot work now; with any other error it has refused the statement.
 */
export interface Database {
  run<T>(statement: Statement<T>): Promise<T>;
}

export interface Clock {
  nowMs(): number;
  sleep(ms: number): Promise<void>;
  /** Calls `run` after that time, unless the returned function is called before. */
  setTimer(ms: number, run: () => void): () => void;
}

/** A number in [0, 1). */
export type Random = () => number;

export interface Log {
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
  /** The time of its Retry-After. */
  retryInSeconds: number | undefined;
  /** The beginning of an answer that was no success. */
  said: string;
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
  /** Rises with every claim of the job: use it to fence your own writes. A bigint, as its text. */
  readonly leaseGeneration: string;
  /** Proves that you hold the job: `sluice.complete(job_id, lease_key)` asks for it. Keep it to yourself. */
  readonly leaseKey: string;
  /** Aborted when the type's time-out has passed or the lease is lost. */
  readonly signal: AbortSignal;
  readonly traceparent: string | null;
  /** Adds the job's id, type and attempt to every line. */
  readonly log: Log;
  /** The platform's bindings, as the Worker was given them. */
  readonly env: Env;
  /** Starts the type's time-out anew, as far as the invocation reaches. Its lease is kept up without asking. */
  extend(): void;
}

/** A claimed job as its handler gets it. */
export interface RunningJob {
  readonly payload: Payload;
  /** Of earlier attempts, the oldest first. */
  readonly errors: readonly JobError[];
  readonly context: HandlerContext;
  /** For Sluice's own kinds of jobs: a pushed job is sent through these. */
  readonly ports: Pick<Ports, "clock" | "sender">;
}

/** How a type's jobs are done: one by one, the whole batch at once, or by somebody else who pulls them. */
export type Work =
  | { kind: "single"; run(job: RunningJob): Promise<Json> }
  | { kind: "batch"; run(jobs: readonly RunningJob[]): Promise<readonly Outcome[]> }
  | { kind: "pulled" };

export interface TypeLimits {
  /** Jobs of the type that are processed at one time, across all drains and pullers. */
  concurrency?: number;
  /** Jobs of the type that are started in any period of that length, across all of them. */
  rate?: { limit: number; perSeconds: number };
}

/** What the queue has to know of a job type. */
export interface JobType {
  readonly type: string;
  readonly queue: string;
  readonly maxAttempts: number;
  readonly backoff: Backoff;
  readonly timeoutSeconds: number;
  readonly leaseSeconds: number;
  readonly limits: TypeLimits;
  /** Requests that one job sends: a drain counts them. */
  readonly subrequests: number;
  readonly work: Work;
}

export interface Registry {
  find(type: string): JobType | undefined;
  all(): readonly JobType[];
}

export interface Ports {
  readonly db: Database;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly sender: Sender;
  readonly registry: Registry;
  readonly env: unknown;
}
