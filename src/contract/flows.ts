// The shapes of the flows API: jobs that wait for others, chains, and signals.

import * as z from "zod";
import { flowStatuses } from "../core/flow.ts";
import { jobStatuses } from "../core/job.ts";
import { jobLimits } from "../core/job-options.ts";
import { enqueueFields, jobResponse, refineEnqueue, slotName, time } from "./jobs.ts";
import { json, jsonObject, limitedList } from "./json.ts";

const key = z.string().min(1).max(jobLimits.maxKeyLength);

const ref = z.string().min(1).max(jobLimits.maxKeyLength);
const blocker = z.union([ref, z.strictObject({ job_id: z.uuid() })]);
const blockers = limitedList(blocker, { max: jobLimits.maxBlockers });

/** A text is the ref of another job of the flow. */
const flowJob = refineEnqueue(
  z.strictObject({
    ...enqueueFields,
    ref,
    after: z
      .union([blockers, z.record(slotName, blockers)])
      .nullable()
      .default(null)
      .describe("Refs of jobs of this flow, or ids as { job_id }: a list, or a list for each slot."),
  }),
);
export type FlowJobRequest = z.output<typeof flowJob>;

export const flowRequest = z.strictObject({
  jobs: limitedList(flowJob, { min: 1, max: jobLimits.maxFlowJobs }),
});

export const flowMadeResponse = z.object({
  flow_id: z.uuid(),
  jobs: z.array(z.object({ ref: z.string(), job_id: z.uuid(), status: z.enum(jobStatuses) })),
});
export type FlowMadeResponse = z.output<typeof flowMadeResponse>;

const counts = z.object({
  blocked: z.int(),
  pending: z.int(),
  processing: z.int(),
  completed: z.int(),
  dead: z.int(),
  cancelled: z.int(),
  discarded: z.int(),
});

const flow = {
  flow_id: z.uuid(),
  status: z.enum(flowStatuses),
  total: z.int(),
  counts,
  created_at: time,
};

export const flowQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(100).default(100),
  cursor: z.string().max(200).optional(),
});
export const flowResponse = z.object({
  ...flow,
  jobs: z.array(jobResponse).describe("In the order of the request."),
  next_cursor: z.string().nullable(),
});
export type FlowResponse = z.output<typeof flowResponse>;

export const flowsQuery = z.strictObject({
  status: z.enum(flowStatuses).optional(),
  limit: z.coerce.number().int().min(1).max(100).default(20),
  cursor: z.string().max(200).optional(),
});
export const flowsResponse = z.object({
  flows: z.array(z.object(flow)),
  next_cursor: z.string().nullable(),
  searched_back_to: time
    .optional()
    .describe(
      "With a status: the search stopped here, before it came to the end. Older flows are found with the cursor.",
    ),
});
export type FlowsResponse = z.output<typeof flowsResponse>;

export const cancelFlowResponse = z.object({
  ...flow,
  cancelled: z.int().describe("How many jobs this request has cancelled. Running ones end by themselves."),
});
export type CancelFlowResponse = z.output<typeof cancelFlowResponse>;

export const deleteFlowResponse = z.object({ flow_id: z.uuid(), deleted: z.literal(true) });

export const chainResponse = z.object({
  chain_id: z.uuid(),
  status: z.enum(jobStatuses).describe("The status of the last job."),
  output: json.describe("The output of the last job."),
  total: z.int(),
  jobs: z.array(jobResponse).describe("In the order of the chain; of a longer one the last 100."),
});
export type ChainResponse = z.output<typeof chainResponse>;

export const resolveRequest = z.strictObject({ output: json.default(null) });

export const signalRequest = z.strictObject({ key, payload: jsonObject.nullable().default(null) });
export const signalResponse = z.object({ name: z.string(), key: z.string(), deduplicated: z.boolean() });
export type SignalResponse = z.output<typeof signalResponse>;
