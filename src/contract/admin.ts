// The shapes of the admin API: job types, queues, API keys and the audit log.
import * as z from "zod";
import { booked } from "../core/booked.ts";
import { deadReasons } from "../core/job.ts";
import { defaultRateLimitPerSecond, roles } from "../core/key.ts";
import { name, time } from "./jobs.ts";
import { json, limitedList } from "./json.ts";
import { page, plainText } from "./pages.ts";

export const books = z.record(z.enum(booked), z.int());

/** From histograms, so they are exact to the bucket: 50, 100, 250, 500 ms, 1, 2.5, 5, 10, 30 s, 1, 5, 15 min, 1, 6, 24 h. */
const percentiles = z.object({ jobs: z.int(), p50_seconds: z.number(), p95_seconds: z.number() });

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
  last_hour: z.object({
    /** The counts begin here, 55 to 60 minutes ago. */
    since: time,
    enqueued: z.int(),
    completed: z.int(),
    /** Attempts that failed. */
    failed: z.int(),
    /** Failed attempts whose jobs run again. */
    retried: z.int(),
    /** Jobs that became dead. */
    died: z.int(),
    /** The share of attempts that failed, from 0 to 1. Null if none ended. */
    failure_rate: z.number().nullable(),
    /** From when a job was due to its first claim. Null if none was claimed. */
    waiting: percentiles.nullable(),
    /** From the claim of the attempt that completed a job to its settlement. Null if none completed. */
    processing: percentiles.nullable(),
  }),
  /** What counts against its limits now: jobs that run, and jobs that started within the period of its rate. Null without limits. */
  in_use: z.object({ running: z.int(), started: z.int() }).nullable(),
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
/** One queue in detail. */
export const queueDetailResponse = queueResponse.extend({
  /** One for each priority that ever had a job. */
  priorities: z.array(
    z.object({
      priority: z.int(),
      pending: z.int(),
      /** The pending jobs that are not due. */
      scheduled: z.int(),
      leased: z.int(),
      blocked: z.int(),
      completed: z.int(),
      dead: z.int(),
    }),
  ),
  oldest_due_seconds: z.number().nullable(),
  /** The keys with the most jobs among the oldest waiting ones with keys, up to 2,000 of each type and priority. */
  top_keys: z.object({
    /** How many jobs were looked at. */
    looked: z.int(),
    keys: z.array(
      z.object({
        kind: z.enum(["partition", "fair"]),
        key: z.string(),
        waiting: z.int(),
        running: z.int(),
        /** Its part of the jobs that were looked at, from 0 to 1. */
        share: z.number(),
      }),
    ),
  }),
  /** Partition keys that stand still behind a dead job. At most 10,000 are counted for each type and priority. */
  blocked_partitions: z.int(),
});
export type QueueDetailResponse = z.output<typeof queueDetailResponse>;
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
