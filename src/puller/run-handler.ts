// Runs the handler of one job and says how to settle it. It never throws: whatever a handler does is an outcome. It does
// not wait for a handler that ignores its signal.
import { camelCased, snakeCased } from "../client/field-names.ts";
import { CancelledError, FatalError, LeaseLostError, RetryableError, Suspension } from "../core/errors.ts";
import type { Json, Outcome } from "../core/job.ts";
import { completionOf } from "../core/next.ts";
import { outcomeOf } from "../queue/drain/outcome.ts";
import { withStorableOutput } from "../queue/drain/storable.ts";
import { createStep } from "../queue/steps/create-step.ts";
import type { StepHost } from "../queue/steps/step-calls.ts";
import type { ClaimedJob, Handler, PulledJob, Settings } from "./options.ts";
import type { Requests, Settlement } from "./requests.ts";
import { createStepHost } from "./step-host.ts";

/** Why a handler's signal is aborted when the puller has no more time to stop. */
export class StoppedError extends Error {
  override readonly name = "StoppedError";
}

/** What to send about a job. Null if its lease is lost: then there is nothing to settle. */
export type End = { settlement: Settlement | null; error?: Error };

export interface HandlerRun {
  end: Promise<End>;
  abort(reason: Error): void;
}

export function startHandler(
  job: ClaimedJob,
  { handlers, timeoutSeconds }: Pick<Settings, "handlers" | "timeoutSeconds">,
  requests: Requests,
): HandlerRun {
  const abortion = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    abortion.signal.addEventListener("abort", () => reject(abortion.signal.reason), { once: true });
  });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const restart = () => {
    clearTimeout(timer);
    if (timeoutSeconds === undefined) return;
    const timedOut = () => abortion.abort(new RetryableError(`timed out after ${timeoutSeconds} s`));
    timer = setTimeout(timedOut, timeoutSeconds * 1000);
  };
  restart();
  const host = createStepHost(job, requests, {
    ...{ signal: abortion.signal, timeoutSeconds, restart },
    end: (reason) => abortion.abort(reason),
  });
  const end = Promise.race([run(job, handlers.get(job.type), host), aborted])
    .then(
      (result) => endOf(job, withStorableOutput(completionOf(result as Json))),
      (error) => failedEnd(job, error),
    )
    .finally(() => clearTimeout(timer));
  return { end, abort: (reason) => abortion.abort(reason) };
}

export function released({ job_id, lease }: ClaimedJob): Settlement {
  return { job_id, lease, outcome: "release" };
}

function suspended({ job_id, lease }: ClaimedJob, outcome: Outcome): Settlement {
  const job = { job_id, lease, outcome: "suspend" } as const;
  if (outcome.kind === "suspend") return { ...job, ...outcome.wait };
  return { ...job, seconds: outcome.kind === "snooze" ? outcome.retryInSeconds : 0 };
}

async function run(job: ClaimedJob, handler: Handler | undefined, host: StepHost): Promise<unknown> {
  if (!handler) throw new FatalError(`there is no handler for the type "${job.type}"`);
  const { payload, lease_expires_at, ...rest } = job;
  const step = createStep(host);
  return handler(payload, { ...camelCased(rest), signal: host.signal, step } satisfies PulledJob);
}

function failedEnd(job: ClaimedJob, thrown: unknown): End {
  if (thrown instanceof LeaseLostError) return { settlement: null, error: thrown };
  if (thrown instanceof CancelledError) return { settlement: released(job) };
  if (thrown instanceof Suspension) return { settlement: suspended(job, thrown.outcome) };
  if (thrown instanceof StoppedError) return { settlement: released(job), error: thrown };
  const error = thrown instanceof Error ? thrown : undefined;
  return endOf(job, outcomeOf(thrown), error);
}

function endOf({ job_id, lease }: ClaimedJob, outcome: Outcome, thrown?: Error): End {
  const job = { job_id, lease };
  if (outcome.kind === "complete") {
    const next = outcome.next && { next: snakeCased(outcome.next) };
    return { settlement: { ...job, outcome: "complete", output: outcome.output, ...next } };
  }
  if (outcome.kind === "release" || outcome.kind === "suspend")
    return { settlement: { ...job, outcome: "release" } };
  // The API has no snooze: the job is retried at that time, and the attempt counts.
  const message = outcome.kind === "snooze" ? (thrown?.message ?? "") : outcome.message;
  return {
    settlement: {
      ...job,
      outcome: "fail",
      error: message,
      ...(outcome.kind === "bury" ? { fatal: true } : { retry_in_seconds: outcome.retryInSeconds }),
    },
    error: thrown ?? new Error(message),
  };
}
