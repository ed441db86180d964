// Runs one claimed job's handler and says what became of it. Never throws: whatever a handler does is an outcome.
import { FatalError, RetryableError, Snooze } from "../core/errors.ts";
import type { ClaimedJob, Outcome } from "../core/job.ts";
import { backoffSeconds } from "../core/policy/backoff.ts";
import type { Handler, Queue } from "./ports.ts";

export async function runJob(queue: Queue, job: ClaimedJob): Promise<Outcome> {
  const handler = queue.registry.find(job.type);
  // Claims ask for registered types only, so this is a registry that changed under us: let another drain have it.
  if (!handler) return { kind: "release" };
  try {
    return { kind: "complete", output: await runWithTimeout(queue, handler, job) };
  } catch (error) {
    return outcomeOf(error, { queue, handler, job });
  }
}

/** The job's time is up even when its handler ignores the signal, so the two race. */
async function runWithTimeout(queue: Queue, handler: Handler, job: ClaimedJob) {
  const timeout = new AbortController();
  const timedOut = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const error = new RetryableError(`timed out after ${handler.timeoutSeconds} s`);
    timeout.abort(error);
    timedOut.reject(error);
  }, handler.timeoutSeconds * 1000);
  const { id: jobId, attempt, maxAttempts, leaseGeneration } = job;
  const context = {
    jobId,
    attempt,
    maxAttempts,
    leaseGeneration,
    signal: timeout.signal,
    log: queue.log,
    env: queue.env,
  };
  try {
    return await Promise.race([handler.run(job.payload, context), timedOut.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function outcomeOf(
  error: unknown,
  { queue, handler, job }: { queue: Queue; handler: Handler; job: ClaimedJob },
): Outcome {
  if (error instanceof Snooze) return { kind: "snooze", retryInSeconds: error.seconds };
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof FatalError) return { kind: "bury", message };
  const asked = error instanceof RetryableError ? error.retryInSeconds : undefined;
  const retryInSeconds =
    asked ?? backoffSeconds(handler.backoff, { attempt: job.attempt, random: queue.random() });
  return { kind: "retry", message, retryInSeconds };
}
