// The options of every kind of job type, with their defaults. An invalid option is an error when the Worker starts.
import * as z from "zod";
import { jobLimits } from "../core/job-options.ts";
import { type Backoff, defaultBackoff } from "../core/policy/backoff.ts";
import type { JobType } from "../queue/ports.ts";
import { type ProducedType, typeDefaults } from "./define-type.ts";
import { faultsOf } from "./faults.ts";
import { type Rate, rateSchema } from "./rate.ts";

export interface TypeOptions extends ProducedType, HandlerOptions {}

/** What only the Worker has to know about a type. */
export interface HandlerOptions {
  /** Default: 30 s, doubling up to an hour, and up to 15 s of jitter. */
  backoff?: Partial<Backoff>;
  /** A handler that runs longer fails. Default 300. */
  timeoutSeconds?: number;
  /** How long a lease lasts unless it is extended: 60 to 3600, default 300. A running drain extends it. */
  leaseSeconds?: number;
  /** How many jobs of this type run at one time, across all drains and pullers. */
  concurrency?: number;
  /** How many jobs of this type start in a period, across all drains and pullers. */
  rate?: Rate;
  /** How many requests the handler sends for one job. A drain counts them against the platform's limit. Default 0. */
  subrequests?: number;
  /** The dashboard shows "hidden" in place of payload, output and steps. The HTTP API and SQL still answer with them. */
  hidePayload?: boolean;
}

const positive = z.number().positive().max(31_536_000);
const name = z.string().regex(jobLimits.namePattern, jobLimits.nameRule);

const schema = z.object({
  type: name,
  queue: name.default(typeDefaults.queue),
  maxAttempts: z.int().min(1).max(jobLimits.maxAttempts).default(typeDefaults.maxAttempts),
  backoff: z
    .object({ baseSeconds: positive, maxSeconds: positive, jitterSeconds: z.number().min(0) })
    .partial()
    .default({}),
  timeoutSeconds: positive.max(13 * 60).default(300),
  leaseSeconds: z.number().min(60).max(3600).default(300),
  concurrency: z.int().min(1).optional(),
  rate: rateSchema.optional(),
  subrequests: z.int().min(0).default(0),
  hidePayload: z.boolean().default(false),
});

export function parseTypeOptions(type: string, options: TypeOptions): Omit<JobType, "work" | "faultsOf"> {
  const parsed = schema.safeParse({ ...options, type });
  if (!parsed.success) {
    const faults = faultsOf(parsed.error).map(({ path, message }) => `${path}: ${message}`);
    throw new TypeError(`job type "${type}": ${faults.join("; ")}`);
  }
  const { backoff, concurrency, rate, ...rest } = parsed.data;
  return {
    ...rest,
    backoff: { ...defaultBackoff, ...definedOnly(backoff) },
    limits: {
      ...(concurrency ? { concurrency } : {}),
      ...(rate ? { rate } : {}),
    },
  };
}

function definedOnly(backoff: { [key in keyof Backoff]?: number | undefined }): Partial<Backoff> {
  return Object.fromEntries(Object.entries(backoff).filter(([, value]) => value !== undefined));
}
