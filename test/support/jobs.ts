// A new job with nothing special about it; a test names only the fields it is about.
import type { NewJob } from "../../src/core/sql/enqueue.ts";

export function newJob(fields: Partial<NewJob> = {}): NewJob {
  return {
    type: "echo",
    payload: {},
    queue: "default",
    priority: 5,
    maxAttempts: 5,
    delaySeconds: null,
    scheduledAt: null,
    expiresAt: null,
    partitionKey: null,
    tags: [],
    ...fields,
  };
}
