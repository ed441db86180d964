// next: what a handler returns to continue with another job.
import type { Payload } from "../core/job.ts";
import type { JobOptions } from "../core/job-options.ts";
import { Next } from "../core/next.ts";
import type { OutputOf, PayloadOf, TypedJob } from "../core/typed-job.ts";

export type NextOptions = Omit<
  JobOptions,
  "idempotencyKey" | "after" | "onBlockerDead" | "debounce" | "throttle" | "traceparent"
>;

/** `return next(send, { to })`: the handler's job completes, and this one comes next in its chain. */
export function next<Job extends TypedJob>(
  job: Job,
  payload: PayloadOf<Job>,
  options: NextOptions = {},
): Next<OutputOf<Job>> {
  return new Next({ type: job.type, payload: payload as Payload, ...options });
}
