// What a caller of the client can catch.
import type { JobResponse } from "../contract/jobs.ts";
import type { Problem } from "../contract/problem.ts";
import type { CamelCased } from "./field-names.ts";

/** The request was refused, or all its tries failed. */
export class SluiceRequestError extends Error {
  override readonly name = "SluiceRequestError";
  /** Of the last response, 0 where there was none; `cause` is then what `fetch` threw. */
  readonly status: number;
  /** What Sluice said; of another server's answer, its status and the beginning of its text. */
  readonly problem: Problem;

  constructor(problem: Problem, options?: ErrorOptions) {
    super(`${problem.title}: ${problem.detail}`, options);
    this.status = problem.status;
    this.problem = problem;
  }
}

/** The job had not finished in the time that `wait` was given. */
export class SluiceTimeoutError extends Error {
  override readonly name = "SluiceTimeoutError";
  /** As it was last seen. */
  readonly job: CamelCased<JobResponse>;

  constructor(job: CamelCased<JobResponse>, timeoutMs: number) {
    super(`job ${job.jobId} is still ${job.status} after ${timeoutMs} ms`);
    this.job = job;
  }
}
