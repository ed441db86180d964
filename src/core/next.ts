// What a handler returns to continue with another job. The job completes, and the other is enqueued in the same settle.
import type { NewJob } from "./job.ts";

export class Next<Output = unknown> {
  /** Never set: it carries the type of the output at the end of the chain. */
  declare readonly output?: Output;
  readonly job: NewJob;

  constructor(job: NewJob) {
    this.job = job;
  }
}
