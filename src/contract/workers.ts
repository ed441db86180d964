// The shapes of the workers API: a puller's heartbeat, the list of live workers, and leaving.
import * as z from "zod";
import { workerKinds } from "../core/worker-kinds.ts";
import { name, time } from "./jobs.ts";
import { limitedList } from "./json.ts";

export const workerId = z.string().min(1).max(255);
const buckets = z.array(z.int());

export const workerRequest = z.strictObject({
  worker_id: workerId,
  queues: limitedList(name, { min: 1, max: 100 }).describe(
    "The queues whose partition keys it shares with others.",
  ),
});

export const workerResponse = z.object({
  worker_id: z.string(),
  expires_at: time.describe("The worker is gone at this time if no heartbeat follows."),
  workers: z.int().describe("The number of live workers of its first queue, itself included."),
  buckets: buckets.describe(
    "The buckets of its first queue, of 360. Its claims return jobs with a partition key of these buckets only.",
  ),
  buckets_by_queue: z
    .record(z.string(), buckets)
    .optional()
    .describe("The buckets of each queue. Only for a worker with several queues."),
});
export type WorkerResponse = z.output<typeof workerResponse>;

export const workersResponse = z.object({
  workers: z.array(
    z.object({
      worker_id: z.string(),
      kind: z.enum(workerKinds).describe("A puller registers itself. A drain is registered by its claims."),
      queues: z.array(z.string()),
      started_at: time.describe("The first heartbeat since it was last gone."),
      seen_at: time.describe("The last heartbeat."),
      expires_at: time,
      bucket_counts: z.record(z.string(), z.int()).describe("How many of the 360 buckets it has, by queue."),
    }),
  ),
});
export type WorkersResponse = z.output<typeof workersResponse>;

export const removedWorkerResponse = z.object({
  worker_id: z.string(),
  removed: z.boolean().describe("False if the worker was gone already."),
});
export type RemovedWorkerResponse = z.output<typeof removedWorkerResponse>;
