// defineSchedule: a schedule in code. `sluice({ schedules })` has all of them.
import * as z from "zod";
import type { Payload } from "../core/job.ts";
import { jobLimits } from "../core/job-options.ts";
import {
  faultOfTimes,
  type MissedRule,
  missedRules,
  type OverlapRule,
  overlapRules,
} from "../core/policy/slots.ts";
import type { NewSchedule } from "../core/schedule.ts";
import type { InputOf } from "../core/standard-schema.ts";
import type { PayloadSchema, TypeDefinition } from "./define-type.ts";
import { faultsOf } from "./faults.ts";

export interface ScheduleOptions<Schema extends PayloadSchema> {
  /** Five fields, or six with seconds first. */
  cron: string;
  /** An IANA zone such as "Europe/Berlin". Default "UTC". */
  timeZone?: string;
  job: TypeDefinition<Schema>;
  payload: InputOf<Schema>;
  /** Default: the queue of the job. */
  queue?: string;
  priority?: number;
  /** What happens to slots that nobody fired within 90 seconds. Default "last": of these, the last one runs. */
  missed?: MissedRule;
  /** "skip": a slot makes no job while the job of the slot before has not ended. Default "allow". */
  overlap?: OverlapRule;
}

export type ScheduleDefinition = Readonly<NewSchedule>;

const schema = z.strictObject({
  name: z.string().regex(jobLimits.namePattern, jobLimits.nameRule),
  cron: z.string(),
  timeZone: z.string().default("UTC"),
  queue: z.string().regex(jobLimits.namePattern, jobLimits.nameRule).optional(),
  priority: z.int().min(0).max(9).optional(),
  missed: z.enum(missedRules).default("last"),
  overlap: z.enum(overlapRules).default("allow"),
});

/** An invalid option is an error when the Worker starts. */
export function defineSchedule<Schema extends PayloadSchema>(
  name: string,
  { job, payload, ...options }: ScheduleOptions<Schema>,
): ScheduleDefinition {
  const parsed = schema.safeParse({ ...options, name });
  const times = parsed.success ? faultOfTimes(parsed.data) : null;
  const faults = [
    ...(parsed.success ? [] : faultsOf(parsed.error)),
    ...(times ? [{ path: times.field === "cron" ? "cron" : "timeZone", message: times.message }] : []),
    ...job
      .faultsOf(payload)
      .map(({ path, message }) => ({ path: path ? `payload.${path}` : "payload", message })),
  ];
  if (!parsed.success || faults.length > 0)
    throw new TypeError(
      `schedule "${name}": ${faults.map(({ path, message }) => `${path}: ${message}`).join("; ")}`,
    );
  const { queue, priority, ...rest } = parsed.data;
  return {
    ...rest,
    type: job.type,
    payload: payload as Payload,
    queue: queue ?? job.queue,
    priority: priority ?? null,
    maxAttempts: job.maxAttempts,
  };
}
