// How a drain's jobs ended, counted for its report. Each failed attempt is one line of the log.
import type { Outcome } from "../../core/job.ts";
import { countedAttempt, isFailure } from "../../core/policy/attempt-end.ts";
import type { Settled } from "../../core/settlements.ts";
import { logEnds } from "../log-ends.ts";
import type { Ports } from "../ports.ts";
import type { EndedJob } from "./job-runs.ts";

export interface SettledCounts {
  completed: number;
  failed: number;
  released: number;
  /** Another worker had the lease, or no settle got through. */
  lost: number;
}

const counterOf = {
  complete: "completed",
  retry: "failed",
  bury: "failed",
  snooze: "released",
  release: "released",
  suspend: "released",
} as const satisfies Record<Outcome["kind"], keyof SettledCounts>;

/** `settled` has the answers in the order of the jobs. A job without an answer is lost. The rest of a run goes with its job. */
export function countSettled(
  ports: Ports,
  { queue, counts }: { queue: string; counts: SettledCounts },
  { jobs, settled }: { jobs: readonly EndedJob[]; settled: readonly Settled[] },
): void {
  const lost: string[] = [];
  for (const [index, ended] of jobs.entries()) {
    const status = settled[index]?.status ?? null;
    if (status === null) lost.push(...[ended.job, ...ended.rest].map(({ id }) => id));
    else {
      counts[counterOf[ended.outcome.kind]]++;
      counts.released += ended.rest.length;
    }
    logFailure(ports, queue, { ...ended, status });
  }
  logEnds(ports.log, { jobs, settled, withFailures: false });
  counts.lost += lost.length;
  if (lost.length > 0) ports.log.warn("lease lost", { queue, jobs: lost });
}

function logFailure(
  ports: Ports,
  queue: string,
  { job, outcome, status, ms }: EndedJob & { status: Settled["status"] },
): void {
  if (!isFailure(outcome)) return;
  ports.log[status === "dead" ? "error" : "warn"]("attempt failed", {
    job_id: job.id,
    type: job.type,
    queue,
    attempt: countedAttempt(job.attempt, outcome),
    max_attempts: job.maxAttempts,
    message: outcome.message,
    ms,
    /** Dead; pending, if it will be tried again; null, if the lease was lost and this outcome with it. */
    status,
  });
}
