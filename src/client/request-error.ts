// The errors that the client throws.
import type { JobResponse } from "../contract/jobs.ts";
import type { Problem } from "../contract/problem.ts";
import type { CamelCased } from "./field-names.ts";

/** The request was refused, or all tries failed. */
export class SluiceRequestError extends Error {
  override readonly name = "SluiceRequestError";
  /** The status of the last response. 0 if there was none: then `cause` is what `fetch` threw. */
  readonly status: number;
  /** The problem document. For an answer that is not from Sluice, its status and the start of its text. */
  readonly problem: Problem;
  /** How long the server asks to wait before the next try. 0 if it did not say. */
  readonly retryAfterMs: number;

  constructor(problem: Problem, options: ErrorOptions & { retryAfterMs?: number } = {}) {
    super(`${problem.title}: ${problem.detail}`, options);
    this.status = problem.status;
    this.problem = problem;
    this.retryAfterMs = options.retryAfterMs ?? 0;
  }
}

/** The job did not end within the time that `wait` was given. */
export class SluiceTimeoutError extends Error {
  override readonly name = "SluiceTimeoutError";
  /** The job's state at the last poll. */
  readonly job: CamelCased<JobResponse>;

  constructor(job: CamelCased<JobResponse>, timeoutMs: number) {
    super(`job ${job.jobId} is still ${job.status} after ${timeoutMs} ms`);
    this.job = job;
  }
}
