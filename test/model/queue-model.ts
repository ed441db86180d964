// The queue as a Map, which model.test.ts compares with Postgres. Its clock counts ticks of five minutes, and only a test
// moves it.
import type { DeadReason, JobStatus, Outcome } from "../../src/core/job.ts";

export const tickSeconds = 300;
const dayTicks = 86_400 / tickSeconds;
const defaultExpiryTicks = 30 * dayTicks;
/** The backoff of an abandoned job is less than a tick while a job has at most three attempts. */
const backoffSeconds = tickSeconds;

export const priorities: Record<string, number> = { a: 5, b: 5, c: 8 };

export interface JobRequest {
  type: string;
  delayTicks: number;
  /** Null means 30 days, which no run of the model reaches. */
  expiryTicks: number | null;
  maxAttempts: number;
}

export interface ModelJob {
  id: string;
  type: string;
  status: JobStatus;
  attempts: number;
  maxAttempts: number;
  abandonments: number;
  failed: number;
  dueAt: number;
  expiresAt: number;
  /** The table `expiry` has the job. Once the reaper has removed it there, only a claim notices the expiry. */
  isListed: boolean;
  /** It was committed late: a cursor may have passed it, and the next advance gives it a new seq. */
  isLate: boolean;
  leaseKey: string | null;
  deadline: number;
  reason: DeadReason | null;
}

/** Abandoned jobs are isolated: only one group of a queue is leased at a time. */
export function isIsolated(job: ModelJob): boolean {
  return job.abandonments > 0;
}

export class QueueModel {
  now = 0;
  readonly jobs = new Map<string, ModelJob>();
  readonly keys = new Map<string, string>();
  readonly paused = new Set<string>();
  readonly open: { id: string; request: JobRequest }[][] = [];
  /** All claims ever made. A stale worker sends those whose lease is lost. */
  readonly claims: { id: string; leaseKey: string }[] = [];

  all(isWanted: (job: ModelJob) => boolean): ModelJob[] {
    return [...this.jobs.values()].filter(isWanted);
  }

  add(id: string, { type, delayTicks, expiryTicks, maxAttempts }: JobRequest, { isLate = false } = {}): void {
    const dueAt = this.now + delayTicks;
    const isListed = delayTicks > 0 || expiryTicks !== null;
    const expiresAt =
      expiryTicks !== null ? this.now + expiryTicks : isListed ? dueAt + defaultExpiryTicks : Infinity;
    const none = { leaseKey: null, reason: null };
    const times = { dueAt, expiresAt, isListed, isLate, deadline: 0 };
    const counts = { attempts: 0, abandonments: 0, failed: 0 };
    this.jobs.set(id, { id, type, maxAttempts, status: "pending", ...none, ...times, ...counts });
  }

  claimable(types: readonly string[]): ModelJob[] {
    if (this.paused.has("queue default")) return [];
    const chosen = types.filter((type) => !this.paused.has(`type ${type}`));
    const isDue = (job: ModelJob) => job.status === "pending" && job.dueAt <= this.now;
    const isolatedRun = this.all(isIsolated).some(
      (job) => job.status === "processing" && job.deadline > this.now,
    );
    return this.all((job) => isDue(job) && chosen.includes(job.type) && !(isolatedRun && isIsolated(job)));
  }

  lease(job: ModelJob, { leaseKey, ticks }: { leaseKey: string; ticks: number }): void {
    this.claims.push({ id: job.id, leaseKey });
    job.attempts++;
    Object.assign(job, { status: "processing", leaseKey, isLate: false, deadline: this.now + ticks });
  }

  holds(claimed: { id: string; leaseKey: string }): boolean {
    const job = this.jobs.get(claimed.id);
    return job?.status === "processing" && job.leaseKey === claimed.leaseKey;
  }

  settle(job: ModelJob, outcome: Outcome, lastReason: DeadReason = "exhausted"): void {
    if (outcome.kind === "complete") job.status = "completed";
    if (outcome.kind === "snooze" || outcome.kind === "release") job.attempts--;
    if (outcome.kind === "retry" || outcome.kind === "bury") job.failed++;
    if (outcome.kind === "bury") this.bury(job, "fatal");
    else if (outcome.kind === "retry" && job.attempts >= job.maxAttempts) this.bury(job, lastReason);
    else if (outcome.kind !== "complete") {
      const seconds = outcome.kind === "release" ? 0 : (outcome.retryInSeconds ?? 0);
      Object.assign(job, { status: "pending", dueAt: this.now + seconds / tickSeconds });
    }
  }

  bury(job: ModelJob, reason: DeadReason): void {
    Object.assign(job, { status: "dead", reason });
  }

  reapLeases(): void {
    for (const job of this.all(({ status, deadline }) => status === "processing" && deadline <= this.now)) {
      job.abandonments++;
      this.settle(job, { kind: "retry", message: "", retryInSeconds: backoffSeconds }, "abandoned");
    }
  }

  reapExpired(): void {
    for (const job of this.all(({ isListed, expiresAt }) => isListed && expiresAt <= this.now)) {
      job.isListed = false;
      if (job.status === "pending") this.bury(job, "expired");
    }
  }

  replay(job: ModelJob): void {
    const expiresSoon = job.expiresAt <= this.now + dayTicks;
    if (expiresSoon) Object.assign(job, { expiresAt: this.now + defaultExpiryTicks, isListed: true });
    Object.assign(job, { status: "pending", attempts: 0, abandonments: 0, dueAt: this.now, reason: null });
  }
}
