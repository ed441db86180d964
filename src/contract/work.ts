// The shapes of the pull API: claim, extend and settle jobs.
import * as z from "zod";
import { jobStatuses } from "../core/job.ts";
import { jobError, jobResponse, name, time } from "./jobs.ts";
import { json, jsonObject, limitedList } from "./json.ts";

const leaseSeconds = z.int().min(60).max(3600);
const lease = z.string().min(1).max(200);
const retryInSeconds = z.number().min(0).max(31_536_000);

export const claimRequest = z.strictObject({
  worker_id: z.string().min(1).max(255),
  queue: name.default("default"),
  /** If left out, every registered type. */
  types: limitedList(z.string().min(1).max(63), { min: 1, max: 1000 }).optional(),
  limit: z.int().min(1).max(1000).default(10),
  lease_seconds: leaseSeconds.default(300),
});

export const claimResponse = z.object({
  jobs: z.array(
    z.object({
      job_id: z.uuid(),
      type: z.string(),
      queue: z.string(),
      payload: jsonObject,
      priority: z.int(),
      attempt: z.int(),
      max_attempts: z.int(),
      lease: z.string(),
      lease_expires_at: time,
      created_at: time,
      traceparent: z.string().nullable(),
      partition_key: z.string().nullable(),
      fair_key: z.string().nullable(),
      tags: z.array(z.string()),
      errors: z.array(jobError),
    }),
  ),
  has_more: z.boolean(),
});
export type ClaimResponse = z.output<typeof claimResponse>;

export const completeRequest = z.strictObject({ lease, output: json.default(null) });

export const failRequest = z.strictObject({
  lease,
  error: z.string().max(100_000),
  fatal: z.boolean().default(false),
  retry_in_seconds: retryInSeconds.optional(),
});

export const extendRequest = z.strictObject({ lease, lease_seconds: leaseSeconds });

export const extendResponse = jobResponse.extend({ lease: z.string(), lease_expires_at: time });

export const releaseRequest = z.strictObject({ lease });

const job = { job_id: z.uuid(), lease };
const settlement = z.discriminatedUnion("outcome", [
  z.strictObject({ ...job, outcome: z.literal("complete"), output: json.default(null) }),
  z.strictObject({ ...job, outcome: z.literal("fail"), ...failRequest.omit({ lease: true }).shape }),
  z.strictObject({ ...job, outcome: z.literal("release") }),
]);
export type SettlementRequest = z.output<typeof settlement>;

export const settlementsRequest = z.strictObject({
  settlements: limitedList(settlement, { min: 1, max: 1000 }),
});

/**
 * `status` is the current status of the job, and null if the job is gone. If the settlement was not applied, `repeated`
 * says why: true means that this lease had already settled the job in the same way, false that the lease is lost. A release
 * leaves no trace, so it is never `repeated`.
 */
export const settlementsResponse = z.object({
  settlements: z.array(
    z.object({
      job_id: z.uuid(),
      status: z.enum(jobStatuses).nullable(),
      applied: z.boolean(),
      repeated: z.boolean(),
    }),
  ),
});
export type SettlementsResponse = z.output<typeof settlementsResponse>;
