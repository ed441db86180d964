// A new job with nothing special about it; a test names only the fields it is about.
import type { NewJob } from "../../src/core/job.ts";

export function newJob(fields: Partial<NewJob> = {}): NewJob {
  return { type: "echo", payload: {}, ...fields };
}
