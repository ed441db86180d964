// What a job is and what can become of it. Everything else in the tree speaks in these words.

export const jobStatuses = ["pending", "processing", "completed", "dead", "discarded", "cancelled"] as const;
export type JobStatus = (typeof jobStatuses)[number];

export const deadReasons = ["exhausted", "fatal", "expired", "abandoned"] as const;
export type DeadReason = (typeof deadReasons)[number];

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Payload = { [key: string]: Json };

export interface JobError {
  attempt: number;
  at: string;
  message: string;
}

export interface Job {
  id: string;
  type: string;
  queue: string;
  status: JobStatus;
  priority: number;
  payload: Payload;
  attempts: number;
  maxAttempts: number;
  createdAt: Date;
  scheduledAt: Date;
  startedAt: Date | null;
  completedAt: Date | null;
  expiresAt: Date;
  errors: JobError[];
  deadReason: DeadReason | null;
  partitionKey: string | null;
  tags: string[];
  idempotencyKey: string | null;
  output: Json;
}

/** What a drain holds while it works on a job; `leaseGeneration` fences every later write. */
export interface ClaimedJob {
  id: string;
  type: string;
  payload: Payload;
  attempt: number;
  maxAttempts: number;
  leaseGeneration: string;
}

/** What became of one attempt. The database judges `retry` against the job's maximum of attempts. */
export type Outcome =
  | { kind: "complete"; output: Json }
  | { kind: "retry"; message: string; retryInSeconds: number }
  | { kind: "bury"; message: string; reason: "fatal" }
  | { kind: "snooze"; retryInSeconds: number }
  | { kind: "release" };

export interface Settlement {
  job: ClaimedJob;
  outcome: Outcome;
}
