// What a handler returns to continue with another job. The job completes, and the other is enqueued in the same settle.
import type { Json, NewJob, Outcome } from "./job.ts";

export class Next<Output = unknown> {
  /** Never set: it carries the type of the output at the end of the chain. */
  declare readonly output?: Output;
  readonly job: NewJob;

  constructor(job: NewJob) {
    this.job = job;
  }
}

/** How an attempt ends whose handler has returned. */
export function completionOf(result: Json | Next): Outcome {
  return result instanceof Next
    ? { kind: "complete", output: null, next: result.job }
    : { kind: "complete", output: result };
}
