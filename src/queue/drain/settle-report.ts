// How a drain's jobs ended, counted for its report. Each failed attempt is one line of the log.
import type { Outcome } from "../../core/job.ts";
import { countedAttempt, isFailure } from "../../core/policy/attempt-end.ts";
import type { Settled } from "../../core/settlements.ts";
import { findJobs } from "../../core/sql/index.ts";
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

interface Report {
  queue: string;
  counts: SettledCounts;
  /** Completed jobs for which there was no lease. Maybe their handlers completed them in a transaction of their own. */
  unsure: EndedJob[];
}

/** `settled` has the answers in the order of the jobs. A job without an answer is lost. The rest of a run goes with its job. */
export function countSettled(
  ports: Ports,
  { queue, counts, unsure }: Report,
  { jobs, settled }: { jobs: readonly EndedJob[]; settled: readonly Settled[] },
): void {
  const lost: string[] = [];
  for (const [index, ended] of jobs.entries()) {
    const status = settled[index]?.status ?? null;
    if (settled[index] && status === null && ended.outcome.kind === "complete") unsure.push(ended);
    else if (status === null) lost.push(...[ended.job, ...ended.rest].map(({ id }) => id));
    else {
      counts[counterOf[ended.outcome.kind]]++;
      counts.released += ended.rest.length;
    }
    logFailure(ports, queue, { ...ended, status });
  }
  logEnds(ports.log, { jobs, settled, withFailures: false });
  countLost(ports, { queue, counts }, lost);
}

/** At the end of a drain. A job that is completed in the attempt of this drain was completed by its handler. */
export async function countUnsure(ports: Ports, { queue, counts, unsure }: Report): Promise<void> {
  if (unsure.length === 0) return;
  const found = await ports.db.run(findJobs(unsure.map(({ job }) => job.id))).catch(() => []);
  const isCompleted = ({ job }: EndedJob) =>
    found.some(
      ({ id, status, attempts }) => id === job.id && status === "completed" && attempts === job.attempt,
    );
  const lost = unsure.filter((ended) => !isCompleted(ended)).map(({ job }) => job.id);
  counts.completed += unsure.length - lost.length;
  countLost(ports, { queue, counts }, lost);
}

function countLost(ports: Ports, { queue, counts }: Omit<Report, "unsure">, lost: readonly string[]): void {
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
