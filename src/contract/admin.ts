// The shapes of the admin API: dead letters, job types, queues, API keys, the audit log and statistics.
import * as z from "zod";
import { booked } from "../core/booked.ts";
import { deadReasons } from "../core/job.ts";
import { defaultRateLimitPerSecond, roles } from "../core/key.ts";
import { jobResponse, name, time } from "./jobs.ts";
import { json, jsonObject, limitedList } from "./json.ts";

export const maxReplayed = 1000;

const page = {
  limit: z.coerce.number().int().min(1).max(100).default(20),
  cursor: z.string().max(200).optional(),
};
const plainText = z.string().regex(/^\P{Cc}+$/u, "must not be empty or contain control characters");
const books = z.record(z.enum(booked), z.int());

export const deadLetterQuery = z.strictObject({
  type: name.optional(),
  reason: z.enum(deadReasons).optional(),
  ...page,
});
export const deadLetterPage = z.object({ jobs: z.array(jobResponse), next_cursor: z.string().nullable() });
export type DeadLetterPage = z.output<typeof deadLetterPage>;

/** Without a payload in the request, the job keeps its own. */
export const replayRequest = z.strictObject({ payload: jsonObject.optional() });
export const discardRequest = z.strictObject({ reason: plainText.max(1000).optional() });

/** Replays the oldest jobs first, at most `count` in one request. A dry run only counts them. */
export const replayManyRequest = z.strictObject({
  type: name,
  reason: z.enum(deadReasons).optional(),
  count: z.int().min(1).max(maxReplayed).default(maxReplayed),
  /** Spreads the jobs over time, so that a replay is not a second outage. If left out, all are due at once. */
  per_minute: z.int().min(1).max(100_000).optional(),
  dry_run: z.boolean().default(false),
});
export const replayManyResponse = z.object({ replayed: z.int(), dry_run: z.boolean() });
export type ReplayManyResponse = z.output<typeof replayManyResponse>;

export const jobTypeResponse = z.object({
  type: z.string(),
  queue: z.string(),
  work: z.enum(["single", "batch", "pulled"]),
  max_attempts: z.int(),
  backoff: z.object({ base_seconds: z.number(), max_seconds: z.number(), jitter_seconds: z.number() }),
  timeout_seconds: z.number(),
  lease_seconds: z.number(),
  concurrency: z.int().nullable(),
  rate: z.object({ limit: z.int(), per_seconds: z.number() }).nullable(),
  paused: z.boolean(),
  paused_since: time.nullable(),
  breaker: z.object({ state: z.enum(["open", "closed"]), opened_at: time.nullable() }),
  books,
});
export type JobTypeResponse = z.output<typeof jobTypeResponse>;
export const jobTypesResponse = z.object({ job_types: z.array(jobTypeResponse) });

/** The answer to a pause and to a resume. */
export const pausedTypeResponse = z.object({ type: z.string(), paused: z.boolean() });
export type PausedTypeResponse = z.output<typeof pausedTypeResponse>;

export const queueResponse = z.object({
  queue: z.string(),
  paused: z.boolean(),
  paused_since: time.nullable(),
  books,
});
export type QueueResponse = z.output<typeof queueResponse>;
export const queuesResponse = z.object({ queues: z.array(queueResponse) });

/** The answer to a pause and to a resume. */
export const pausedQueueResponse = z.object({ queue: z.string(), paused: z.boolean() });
export type PausedQueueResponse = z.output<typeof pausedQueueResponse>;

export const partitionQuery = z.strictObject({
  blocked: z.literal("true", "must be true: only blocked partitions can be listed"),
  ...page,
});
/** Partition keys that stand still, because a job of theirs is dead. The longest blocked come first. */
export const partitionPage = z.object({
  partitions: z.array(
    z.object({
      partition_key: z.string(),
      /** Its place on the ring of workers. */
      bucket: z.int().min(0).max(359),
      since: time,
      /** The dead job that blocks the key, until it is replayed or discarded. */
      job_id: z.uuid(),
      type: z.string(),
      dead_reason: z.enum(deadReasons),
      /** The message of its last failed attempt. */
      error: z.string().nullable(),
      /** The due jobs that wait behind it, counted up to 1,000. */
      waiting: z.int(),
      waiting_is_more: z.boolean(),
    }),
  ),
  next_cursor: z.string().nullable(),
});
export type PartitionPage = z.output<typeof partitionPage>;

export const keyRequest = z
  .strictObject({
    name: plainText.max(100),
    role: z.enum(roles),
    job_types: limitedList(name, { min: 1, max: 1000 }).nullable().default(null),
    rate_limit_per_second: z.int().min(1).max(1_000_000).default(defaultRateLimitPerSecond),
  })
  .refine((key) => key.job_types === null || key.role === "producer", {
    path: ["job_types"],
    message: "only a producer's key can be limited to job types",
  });

export const keyResponse = z.object({
  id: z.uuid(),
  name: z.string(),
  role: z.enum(roles),
  job_types: z.array(z.string()).nullable(),
  rate_limit_per_second: z.int(),
  created_at: time,
  revoked_at: time.nullable(),
  last_used_at: time.nullable(),
});
export type KeyResponse = z.output<typeof keyResponse>;
export const keysResponse = z.object({ keys: z.array(keyResponse) });
/** The only answer that contains the key. */
export const newKeyResponse = keyResponse.extend({ key: z.string() });
export type NewKeyResponse = z.output<typeof newKeyResponse>;

export const auditQuery = z.strictObject(page);
export const auditPage = z.object({
  entries: z.array(
    z.object({
      id: z.string(),
      at: time,
      actor: z.string(),
      action: z.string(),
      target: z.string(),
      before: json,
      after: json,
    }),
  ),
  next_cursor: z.string().nullable(),
});
export type AuditPage = z.output<typeof auditPage>;

export const statsResponse = z.object({
  totals: books,
  books: z.array(z.object({ queue: z.string(), type: z.string(), books })),
  /** The last hour by queue and type. Pairs after the 200 with the most jobs are added up as "other". Empty minutes are left out. */
  minutes: z.array(
    z.object({
      minute: time,
      queue: z.string(),
      type: z.string(),
      enqueued: z.int(),
      completed: z.int(),
      failed: z.int(),
      expired: z.int(),
      /** The change in the number of due jobs. */
      ready: z.int(),
    }),
  ),
  oldest_due_seconds: z.number(),
  expired_lease_seconds: z.number(),
  /** The queues with partition keys that stand still behind a dead job. */
  blocked_partitions: z.array(
    z.object({
      queue: z.string(),
      /** At most 10,000 are counted for each type and priority. */
      partitions: z.int(),
      /** Since when the longest one is blocked. */
      since: time,
      /** The dead job that blocks it. */
      job_id: z.uuid(),
    }),
  ),
  /** The last rounds of each kind, newest first. */
  rounds: z.array(
    z.object({
      kind: z.string(),
      queue: z.string().nullable(),
      started_at: time,
      ended_at: time,
      claimed: z.int(),
      completed: z.int(),
      failed: z.int(),
      released: z.int(),
      lost: z.int(),
      reason: z.string(),
      message: z.string().nullable(),
      /** Only for reap and watch rounds: what each step did, and how long it took. */
      steps: jsonObject.nullable(),
    }),
  ),
});
export type StatsResponse = z.output<typeof statsResponse>;
