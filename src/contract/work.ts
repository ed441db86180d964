// The shapes of the pull API: claim, extend and settle jobs.
import * as z from "zod";
import { jobStatuses } from "../core/job.ts";
import { enqueueFields, jobError, jobResponse, jobSchedule, name, refineEnqueue, time } from "./jobs.ts";
import { json, jsonObject, limitedList } from "./json.ts";
import { workerId } from "./workers.ts";

const leaseSeconds = z.int().min(60).max(3600);
const lease = z.string().min(1).max(200);
const retryInSeconds = z.number().min(0).max(31_536_000);

export const claimRequest = z.strictObject({
  worker_id: workerId,
  queue: name.default("default"),
  /** If left out, every registered type. */
  types: limitedList(z.string().min(1).max(63), { min: 1, max: 1000 }).optional(),
  limit: z.int().min(1).max(1000).default(10),
  lease_seconds: leaseSeconds.default(300),
  wait_seconds: z
    .number()
    .min(0)
    .max(20)
    .default(0)
    .describe("If no job is due, the answer waits up to this long for a first one."),
  max_run: z
    .int()
    .min(1)
    .max(1000)
    .default(1)
    .describe(
      "The most consecutive jobs of one partition key in the answer. They are a run: work them one after another.",
    ),
});

const blocker = z.object({ job_id: z.uuid(), status: z.enum(jobStatuses), output: json });

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
      lease_generation: z
        .string()
        .describe("A number as text. It rises with every claim of the job. Use it to fence your own writes."),
      lease_expires_at: time,
      created_at: time,
      traceparent: z.string().nullable(),
      partition_key: z.string().nullable(),
      fair_key: z.string().nullable(),
      run: z
        .string()
        .nullable()
        .describe(
          "Equal for the jobs of one run, null for a job without a partition key. Work the jobs of a run one after " +
            "another, in the order of this list. When one of them fails or is released, all jobs after it are pending " +
            "again: do not run them, since their leases are lost.",
        ),
      tags: z.array(z.string()),
      errors: z.array(jobError),
      blockers: z
        .record(z.string(), z.array(blocker))
        .nullable()
        .describe("The jobs that it waited for, by slot, and their outputs. Null if it waited for none."),
      schedule: jobSchedule.nullable(),
    }),
  ),
  has_more: z.boolean(),
});
export type ClaimRequest = z.output<typeof claimRequest>;
export type ClaimResponse = z.output<typeof claimResponse>;

const { idempotency_key: _key, on_blocker_dead: _onDead, ...nextFields } = enqueueFields;
const next = refineEnqueue(z.strictObject(nextFields))
  .optional()
  .describe("The job completes, and this one comes next in its chain: both or none.");

export const completeRequest = z.strictObject({ lease, output: json.default(null), next });

export const failRequest = z.strictObject({
  lease,
  error: z.string().max(100_000),
  fatal: z.boolean().default(false),
  retry_in_seconds: retryInSeconds.optional(),
});

export const extendRequest = z.strictObject({ lease, lease_seconds: leaseSeconds });

const cancelRequested = z
  .boolean()
  .describe(
    "True if somebody cancelled the job: stop the work and release the job, which is then cancelled.",
  );

export const extendResponse = jobResponse.extend({
  lease: z.string(),
  lease_expires_at: time,
  cancel_requested: cancelRequested,
});

export const extensionsRequest = z.strictObject({
  extensions: limitedList(z.strictObject({ job_id: z.uuid(), lease }), { min: 1, max: 1000 }),
  lease_seconds: leaseSeconds,
});

export const extensionsResponse = z.object({
  extensions: z.array(
    z.object({
      job_id: z.uuid(),
      lease_expires_at: time.nullable().describe("Null if the lease is lost."),
      cancel_requested: cancelRequested,
    }),
  ),
});
export type ExtensionsResponse = z.output<typeof extensionsResponse>;

const stepName = z.string().min(1).max(500);
const tookMs = z
  .number()
  .min(0)
  .max(31_536_000_000)
  .optional()
  .describe("How long it took, in milliseconds. GET /v1/jobs/:id shows it.");

export const stepsRequest = z.strictObject({
  lease,
  lease_seconds: leaseSeconds
    .default(300)
    .describe("The lease is extended when less than half of this is left."),
  steps: limitedList(
    z.union([
      z.strictObject({ name: stepName, value: json, took_ms: tookMs }),
      z.strictObject({ name: stepName, seconds: retryInSeconds }),
    ]),
    { max: 100 },
  )
    .default([])
    .describe(
      "What durable steps have returned. The first value of a name stays. A step with `seconds` is a sleep: its value is " +
        "the time when it is over, in milliseconds since 1970. Without steps, the answer has all stored ones.",
    ),
});

export const stepsResponse = z.object({
  job_id: z.uuid(),
  steps: z.record(z.string(), json).describe("The sleeps, and the steps that were stored before."),
  cancel_requested: cancelRequested,
  now: time.describe("The time of the database."),
});
export type StepsResponse = z.output<typeof stepsResponse>;

const signalKey = z.strictObject({ name, key: z.string().min(1).max(255) });

export const childrenRequest = z.strictObject({
  lease,
  lease_seconds: leaseSeconds.default(300),
  jobs: limitedList(
    refineEnqueue(
      z.strictObject({
        ...nextFields,
        idempotency_key: z
          .string()
          .min(1)
          .max(255)
          .describe("Begins with the id of the claimed job and a colon."),
      }),
    ),
    { min: 1, max: 100 },
  ),
});
export const childrenResponse = z.object({
  job_ids: z.array(z.uuid()).describe("In the order of the jobs."),
});
export type ChildrenResponse = z.output<typeof childrenResponse>;

export const waitedRequest = z.strictObject({
  lease,
  lease_seconds: leaseSeconds.default(300),
  signal: signalKey.optional(),
  jobs: limitedList(z.uuid(), { max: 1000 }).default([]),
});
export const waitedResponse = z.object({
  signal: z
    .object({ payload: json })
    .nullable()
    .describe("Null if nobody has sent it yet, or if none was asked for."),
  jobs: z.array(blocker).describe("In the order of the request. Of a chain the last job."),
});
export type WaitedResponse = z.output<typeof waitedResponse>;

export const releaseRequest = z.strictObject({ lease });

const job = { job_id: z.uuid(), lease };
const outcomes = [
  z.strictObject({ ...job, outcome: z.literal("complete"), output: json.default(null), next }),
  z.strictObject({ ...job, outcome: z.literal("fail"), ...failRequest.omit({ lease: true }).shape }),
  z.strictObject({ ...job, outcome: z.literal("release") }),
  z
    .strictObject({
      ...job,
      outcome: z.literal("suspend"),
      seconds: retryInSeconds.optional(),
      signal: signalKey.optional(),
      jobs: limitedList(z.uuid(), { min: 1, max: 1000 }).optional(),
    })
    .describe(
      "The job waits for a signal, for the end of jobs, or for so many seconds, whichever comes first. No attempt is used.",
    ),
] as const;
type Outcomes = (typeof outcomes)[number];
// The type of a union differs between versions of zod 4, and this one is in the package's types.
const settlement: z.ZodType<z.output<Outcomes>, z.input<Outcomes>> = z.discriminatedUnion(
  "outcome",
  outcomes,
);
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
