// A plain new job, so that a test names only the fields that matter to it, and a key without a lease.
import type { NewJob } from "../../src/core/job.ts";

/** A lease key that no lease has. */
export const noLease = "00000000-0000-0000-0000-000000000001";

export function newJob(fields: Partial<NewJob> = {}): NewJob {
  return { type: "echo", payload: {}, ...fields };
}
