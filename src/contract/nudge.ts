// POST /v1/nudge: says that jobs were enqueued by SQL.
import * as z from "zod";
import { jobLimits } from "../core/job-options.ts";

export const nudgeRequest = z.strictObject({
  queue: z
    .string()
    .regex(jobLimits.namePattern, jobLimits.nameRule)
    .optional()
    .describe("The queue of the new jobs. If left out, all queues of the deployment."),
});

export const nudgeResponse = z.object({
  queues: z.array(z.string()).describe("Where drains look for jobs."),
});
export type NudgeResponse = z.output<typeof nudgeResponse>;
