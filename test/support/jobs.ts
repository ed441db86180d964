// A new job with nothing special about it, of which a test names only the fields it is about; and a lease that is none.
import type { NewJob } from "../../src/core/job.ts";

/** The key of no lease. */
export const noLease = "00000000-0000-0000-0000-000000000001";

export function newJob(fields: Partial<NewJob> = {}): NewJob {
  return { type: "echo", payload: {}, ...fields };
}
