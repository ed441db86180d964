// What became of a drain's jobs, counted for its report; each failed attempt is one line of the log.
import type { Outcome } from "../../core/job.ts";
import { countedAttempt, isFailure } from "../../core/policy/attempt-end.ts";
import type { Settled } from "../../core/settlements.ts";
import type { Ports } from "../ports.ts";
import type { Landing } from "./running-jobs.ts";

export interface SettledCounts {
  completed: number;
  failed: number;
  released: number;
  /** The lease had gone to somebody else, or the settle never got through. */
  lost: number;
}

const counted = {
  complete: "completed",
  retry: "failed",
  bury: "failed",
  snooze: "released",
  release: "released",
} as const satisfies Record<Outcome["kind"], keyof SettledCounts>;

export interface SettleReport {
  readonly counts: SettledCounts;
  add(batch: readonly Landing[], settled: readonly Settled[]): void;
}

export function createSettleReport(ports: Ports, name: string): SettleReport {
  const counts = { completed: 0, failed: 0, released: 0, lost: 0 };
  return {
    counts,
    add(batch, settled) {
      const statuses = new Map(settled.map(({ id, status }) => [id, status]));
      const lost: string[] = [];
      for (const { job, outcome } of batch) {
        const status = statuses.get(job.id) ?? null;
        if (status === null) lost.push(job.id);
        else counts[counted[outcome.kind]]++;
        if (isFailure(outcome)) logFailure(ports, name, { job, outcome, status });
      }
      counts.lost += lost.length;
      if (lost.length > 0) ports.log.warn("lease lost", { queue: name, jobs: lost });
    },
  };
}

function logFailure(
  ports: Ports,
  name: string,
  {
    job,
    outcome,
    status,
  }: Landing & { outcome: Extract<Outcome, { message: string }>; status: Settled["status"] },
): void {
  const isDead = status === "dead";
  ports.log[isDead ? "error" : "warn"]("attempt failed", {
    job_id: job.id,
    type: job.type,
    queue: name,
    attempt: countedAttempt(job.attempt, outcome),
    max_attempts: job.maxAttempts,
    message: outcome.message,
    /** Dead; pending: it will be tried again; null: the lease was lost, and this outcome with it. */
    status,
  });
}
