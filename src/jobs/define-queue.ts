// defineQueue: what a deployment says about a queue's keys. A queue needs no definition; without one it has the defaults.
import * as z from "zod";
import { jobLimits } from "../core/job-options.ts";
import { defaultQueuePolicy, type QueuePolicy } from "../core/key-policy.ts";
import { faultsOf } from "./faults.ts";
import { type Rate, rateSchema } from "./rate.ts";

export interface QueueOptions {
  /** For jobs with a partition key, which run one at a time and in order. */
  partitions?: {
    /** "block" (default): a dead job stops its key until it is replayed or discarded. "pass": the next job runs. */
    onDead?: "block" | "pass";
    /** The most consecutive jobs of one key that a drain claims together: 1 to 1,000, default 100. */
    maxRun?: number;
  };
  /** For jobs with a fair key. Keys take turns. Both limits are for each key, across all drains and pullers. */
  shares?: {
    /** How many jobs of one key run at one time. Default: no limit. */
    concurrency?: number;
    /** How many jobs of one key start in a period. They start evenly spaced. Default: no limit. */
    rate?: Rate;
  };
}

export interface QueueDefinition {
  readonly queue: string;
  readonly policy: QueuePolicy;
}

const schema = z.strictObject({
  queue: z.string().regex(jobLimits.namePattern, jobLimits.nameRule),
  partitions: z
    .strictObject({
      onDead: z.enum(["block", "pass"]).default(defaultQueuePolicy.onDead),
      maxRun: z.int().min(1).max(1000).default(defaultQueuePolicy.maxRun),
    })
    .prefault({}),
  shares: z
    .strictObject({ concurrency: z.int32().min(1).optional(), rate: rateSchema.optional() })
    .default({}),
});

/** An invalid option is an error when the Worker starts. */
export function defineQueue(queue: string, options: QueueOptions = {}): QueueDefinition {
  const parsed = schema.safeParse({ ...options, queue });
  if (!parsed.success) {
    const faults = faultsOf(parsed.error).map(({ path, message }) => `${path}: ${message}`);
    throw new TypeError(`queue "${queue}": ${faults.join("; ")}`);
  }
  const { partitions, shares } = parsed.data;
  return {
    queue,
    policy: {
      ...partitions,
      concurrency: shares.concurrency ?? null,
      secondsApart: shares.rate ? shares.rate.perSeconds / shares.rate.limit : null,
    },
  };
}
