// The shapes of the jobs API: what a producer sends and what it gets back.
import * as z from "zod";
import { deadReasons, jobStatuses, onBlockerDead } from "../core/job.ts";
import {
  type Debounce,
  type EnqueueOutcome,
  enqueueOutcomes,
  type JobOptions,
  jobLimits,
  type MergeDebounce,
  type PlainDebounce,
} from "../core/job-options.ts";
import { stepKinds } from "../core/job-steps.ts";
import { waitingKinds } from "../core/policy/waiting-for.ts";
import { bindingFields, refineBinding } from "./debounce.ts";
import { json, jsonObject, limitedList } from "./json.ts";

export const name = z.string().regex(jobLimits.namePattern, jobLimits.nameRule);
export const time = z.iso.datetime({ offset: true });
/** A time in a request. The year has four digits, so that all clients and the database can read it. */
export const requestTime = time.refine(
  (text) => !(Date.parse(text) < 0 || Date.parse(text) >= Date.UTC(10_000, 0)),
  "must be between the years 1970 and 9999 in UTC",
);
const requestDate = requestTime.transform((text) => new Date(text));
const key = z.string().min(1).max(jobLimits.maxKeyLength);
const tag = z.string().min(1).max(jobLimits.maxTagLength);

export const slotName = z.string().regex(jobLimits.slotPattern, jobLimits.slotRule);

/** A job's options in snake_case, but for `after`. `traceparent` is not here: it is a header. */
export const enqueueFields = {
  type: z.string().min(1).max(63),
  payload: jsonObject.default({}),
  queue: name.optional(),
  priority: z.int().min(0).max(jobLimits.maxPriority).default(5),
  max_attempts: z.int().min(1).max(jobLimits.maxAttempts).optional(),
  delay_seconds: z.number().min(0).max(jobLimits.maxDelaySeconds).nullable().default(null),
  scheduled_at: requestDate.nullable().default(null),
  expires_at: requestDate.nullable().default(null),
  idempotency_key: key.nullable().default(null),
  partition_key: key.nullable().default(null),
  fair_key: key.nullable().default(null),
  on_blocker_dead: z
    .enum(onBlockerDead)
    .nullable()
    .default(null)
    .describe(
      "What happens if a job that it waits for does not complete. die, the default: it is dead too, until that job is " +
        "replayed. run: it runs when all of them have ended.",
    ),
  tags: limitedList(tag, { max: jobLimits.maxTags }).default([]),
};

interface Exclusive {
  delay_seconds: number | null;
  scheduled_at: Date | null;
  partition_key: string | null;
  fair_key: string | null;
}

export function refineEnqueue<Request extends z.ZodType<Exclusive>>(request: Request) {
  return request
    .refine((job) => !(job.delay_seconds && job.scheduled_at), {
      path: ["scheduled_at"],
      message: "must not be set together with delay_seconds",
    })
    .refine((job) => job.partition_key === null || job.fair_key === null, {
      path: ["fair_key"],
      message: "must not be given together with partition_key",
    });
}

const jobIds = limitedList(z.uuid(), { max: jobLimits.maxBlockers });

export const enqueueRequest = refineBinding(
  refineEnqueue(
    z.strictObject({
      ...enqueueFields,
      ...bindingFields,
      after: z
        .union([jobIds, z.record(slotName, jobIds)])
        .nullable()
        .default(null)
        .describe("The jobs that it waits for: a list of ids, or a list for each slot of its type."),
    }),
  ),
);
export type EnqueueRequest = z.output<typeof enqueueRequest>;
export type { Debounce, EnqueueOutcome, JobOptions, MergeDebounce, PlainDebounce };

export const batchRequest = z.strictObject({ jobs: limitedList(enqueueRequest, { min: 1, max: 100 }) });

export const enqueueResponse = z.object({
  job_id: z.uuid(),
  status: z.enum(jobStatuses),
  type: z.string(),
  queue: z.string(),
  scheduled_at: time,
  deduplicated: z.boolean(),
  outcome: z
    .enum(enqueueOutcomes)
    .optional()
    .describe(
      "Only with debounce or throttle: what has become of the request. created: a new job. kept, merged, throttled: " +
        "job_id is the job that was there. replaced: a new job in the place of replaced_job_id, which is cancelled.",
    ),
  replaced_job_id: z.uuid().nullable().optional(),
});
export type EnqueueResponse = z.output<typeof enqueueResponse>;

export const batchResponse = z.object({ jobs: z.array(enqueueResponse) });
export type BatchResponse = z.output<typeof batchResponse>;

export const jobError = z.object({
  attempt: z.int(),
  at: time,
  message: z.string(),
  /** When the attempt began. Only in the answer for one job. */
  started_at: time.optional(),
  /** Who ran it: a drain or a puller. Null if it gave no name. Only in the answer for one job. */
  worker: z.string().nullable().optional(),
  /** Only in the answer for one job, and only if the handler threw an error that has a stack. */
  stack: z.string().nullable().optional(),
  /** The causes of the error, nearest first. */
  causes: z.array(z.object({ message: z.string(), stack: z.string().nullable() })).optional(),
});

/** Why a pending or blocked job does not run. If several reasons hold: time, key, pause, breaker, limit, turn, the first of these. */
export const waitingFor = z.object({
  kind: z.enum(waitingKinds),
  /** A sentence for people. */
  detail: z.string(),
  /** For `key`: the jobs of its partition key that come first. For `jobs`: some of those that it waits for. */
  job_ids: z.array(z.uuid()),
});

export const jobStep = z.object({
  name: z
    .string()
    .describe(
      "As it is stored: `charge`, `sleep:night`, `wait:paid:order 7`, `all:render`. A second `charge` is `charge#2`.",
    ),
  kind: z.enum(stepKinds),
  started_at: time
    .nullable()
    .describe("Null if it is not known: of a wait without a time-out, and of old steps."),
  ended_at: time
    .nullable()
    .describe(
      "When it was stored. Of a sleep: when it is over, which may be in the future. Null while it waits, and, if `started_at` is " +
        "null too, of a step that was stored by an older release.",
    ),
  value: json
    .optional()
    .describe("Left out while it waits, and if the values of the job are above 256 KiB together."),
});

/** The schedule that has made a job. */
export const jobSchedule = z.object({
  name: z.string(),
  slot: time.describe("Of a job that was run by hand: when that was."),
  missed: z.boolean().describe("The slot was fired more than 90 seconds late."),
});

export const jobResponse = z.object({
  job_id: z.uuid(),
  type: z.string(),
  queue: z.string(),
  status: z.enum(jobStatuses),
  priority: z.int(),
  payload: jsonObject,
  attempts: z.int(),
  max_attempts: z.int(),
  created_at: time,
  scheduled_at: time,
  started_at: time.nullable(),
  completed_at: time.nullable(),
  worker: z.string().nullable().describe("The drain or puller that runs the job, or has completed it."),
  expires_at: time,
  error: z.string().nullable(),
  errors: z.array(jobError),
  dead_reason: z.enum(deadReasons).nullable(),
  partition_key: z.string().nullable(),
  /** A stable hash of the partition key: 0 to 359. */
  partition_bucket: z.int().nullable(),
  fair_key: z.string().nullable(),
  tags: z.array(z.string()),
  idempotency_key: z.string().nullable(),
  output: json,
  /** Its place in a chain of jobs that continue each other. `chain_id` is the id of the first. */
  chain: z.object({ chain_id: z.uuid(), index: z.int() }).nullable(),
  flow_id: z.uuid().nullable(),
  /** For dead_reason `blocker`: the job whose end has killed it. */
  culprit: z.uuid().nullable(),
  /** Of a cancelled job: the job that has replaced it. */
  superseded_by: z.uuid().nullable(),
  schedule: jobSchedule.nullable(),
  /** Only in the answer to GET /v1/jobs/:id. Null if the job is neither pending nor blocked. */
  waiting_for: waitingFor.nullable().optional(),
  /** Its durable steps in the order in which they began, at most 1,000. Only in the answer to GET /v1/jobs/:id. */
  steps: z.array(jobStep).optional(),
});
export type JobResponse = z.output<typeof jobResponse>;

export const cancelRequest = z.strictObject({
  running: z
    .boolean()
    .default(false)
    .describe("If true, a job that is being processed is asked to stop. The answer is 202."),
});

export const cancelRequestedResponse = jobResponse.extend({ cancel_requested: z.literal(true) });
export interface CancelRequestedResponse extends JobResponse {
  cancel_requested: true;
}

const withoutNul = (text: z.ZodString) =>
  text.refine((value) => !value.includes("\0"), "must not contain a NUL character");
const listKey = withoutNul(key);

export const listQuery = z.strictObject({
  type: name.optional(),
  status: z.enum(jobStatuses).optional(),
  queue: name.optional(),
  tag: withoutNul(tag).optional(),
  partition_key: listKey.optional(),
  fair_key: listKey.optional(),
  /** Exact. It is found as long as the key is kept, for 7 days. */
  idempotency_key: listKey.optional(),
  /** Created at this time or later. */
  since: requestTime.optional(),
  /** Created before this time. */
  until: requestTime.optional(),
  limit: z.coerce.number().int().min(1).max(100).default(20),
  cursor: z.string().max(200).optional(),
});

export const listResponse = z.object({
  jobs: z.array(jobResponse),
  /** A page may have fewer jobs than its limit although there are more: only without a cursor it is the last one. */
  next_cursor: z.string().nullable(),
  /** Only if the search stopped before the page was full: jobs that are older than this were not looked at yet. */
  searched_back_to: time.optional(),
});
export type ListResponse = z.output<typeof listResponse>;
