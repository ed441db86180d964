// How large the body of a request may be, in bytes.
import { jobLimits } from "../core/job-options.ts";

export const bodyLimits = {
  /** One payload, the ids of the jobs that it waits for, and room for the other fields. */
  job: jobLimits.maxPayloadBytes + 48 * jobLimits.maxBlockers + 16 * 1024,
  /** Neon's limit for one request, less the text of the statement. */
  batch: 8 * 1024 * 1024,
  /** Holds the output of one job, or the names of 1,000 types. */
  pull: 1024 * 1024,
  /** Holds the names of 1,000 types. */
  key: 128 * 1024,
  alarm: 4096,
} as const;
