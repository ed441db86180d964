// The queue as a Map, which model.test.ts compares with Postgres. Its clock counts ticks of five minutes, and only a test
// moves it.
import type { DeadReason, JobStatus, Outcome } from "../../src/core/job.ts";
import { DebounceRules } from "./debounce-rules.ts";
import { isOrdered, KeyRules, type Place } from "./key-rules.ts";

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
  key: string | null;
}

export interface ModelJob {
  id: string;
  type: string;
  key: string | null;
  /** In its key. Null while it is delayed. */
  place: Place | null;
  /** It holds the turn of its partition key: it runs, or is to run again, or is dead and blocks. */
  hasTurn: boolean;
  /** Orders the jobs of a run. */
  claimedAt: number;
  /** Orders the jobs that become due in the same tick. */
  scheduling: number;
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
  readonly open: { id: string; request: JobRequest; event: number }[][] = [];
  /** All claims ever made. A stale worker sends those whose lease is lost. */
  readonly claims: { id: string; leaseKey: string }[] = [];
  readonly keyed = new KeyRules(this);
  readonly debounces = new DebounceRules(this);

  all(isWanted: (job: ModelJob) => boolean): ModelJob[] {
    return [...this.jobs.values()].filter(isWanted);
  }

  /** `begun` is the event of its enqueue if it was committed later, and `transaction` that of the first one in it. */
  add(id: string, request: JobRequest, late?: { begun: number; transaction: number }): void {
    const { type, key, delayTicks, expiryTicks, maxAttempts } = request;
    const { from, to, transaction } = this.keyed.newPlace();
    const place = late ? { from: late.begun, to, transaction: late.transaction } : { from, to, transaction };
    const dueAt = this.now + delayTicks;
    const isListed = delayTicks > 0 || expiryTicks !== null;
    const expiresAt =
      expiryTicks !== null ? this.now + expiryTicks : isListed ? dueAt + defaultExpiryTicks : Infinity;
    const none = { leaseKey: null, reason: null };
    const times = { dueAt, expiresAt, isListed, isLate: late !== undefined, deadline: 0 };
    const counts = { attempts: 0, abandonments: 0, failed: 0 };
    const keyed = { key, hasTurn: false, claimedAt: 0, scheduling: place.from };
    const inLine = { ...keyed, place: delayTicks > 0 ? null : place };
    this.jobs.set(id, { id, type, maxAttempts, status: "pending", ...none, ...times, ...counts, ...inLine });
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
    job.claimedAt = this.keyed.nextEvent();
    job.hasTurn = isOrdered(job);
    Object.assign(job, { status: "processing", leaseKey, isLate: false, deadline: this.now + ticks });
  }

  holds(claimed: { id: string; leaseKey: string }): boolean {
    const job = this.jobs.get(claimed.id);
    return job?.status === "processing" && job.leaseKey === claimed.leaseKey;
  }

  settle(job: ModelJob, outcome: Outcome, lastReason: DeadReason = "exhausted"): void {
    if (outcome.kind === "complete") Object.assign(job, { status: "completed", hasTurn: false });
    else this.#sendBack(this.keyed.restOfRun(job));
    if (outcome.kind === "snooze" || outcome.kind === "release") job.attempts--;
    if (outcome.kind === "retry" || outcome.kind === "bury") job.failed++;
    if (outcome.kind === "bury") this.bury(job, "fatal");
    else if (outcome.kind === "retry" && job.attempts >= job.maxAttempts) this.bury(job, lastReason);
    else if (outcome.kind !== "complete") {
      const seconds = "retryInSeconds" in outcome ? (outcome.retryInSeconds ?? 0) : 0;
      Object.assign(job, { status: "pending", dueAt: this.now + seconds / tickSeconds });
    }
  }

  /** The rest of a run keeps its places. */
  #sendBack(jobs: readonly ModelJob[]): void {
    for (const job of jobs)
      Object.assign(job, { status: "pending", hasTurn: false, attempts: job.attempts - 1, dueAt: this.now });
  }

  bury(job: ModelJob, reason: DeadReason): void {
    const hasTurn = isOrdered(job) && this.keyed.policy.onDead === "block" && job.place !== null;
    Object.assign(job, { status: "dead", reason, hasTurn });
  }

  reapLeases(): void {
    const hasRunOut = ({ status, deadline }: ModelJob) => status === "processing" && deadline <= this.now;
    for (const job of this.all((job) => hasRunOut(job) && this.keyed.isFirstOfRun(job))) {
      job.abandonments++;
      this.settle(job, { kind: "retry", message: "", retryInSeconds: backoffSeconds }, "abandoned");
    }
  }

  /** `isLeft` says of a job whether the reaper left it: one that is to block its key may wait until its turn. */
  reapExpired(isLeft: (job: ModelJob) => boolean): void {
    for (const job of this.all(({ isListed, expiresAt }) => isListed && expiresAt <= this.now)) {
      job.isListed = false;
      if (job.status === "pending" && !isLeft(job)) this.bury(job, "expired");
    }
  }

  /** A dead job that blocked its key keeps its place, any other one is like a new job. */
  replay(job: ModelJob): void {
    const expiresSoon = job.expiresAt <= this.now + dayTicks;
    if (expiresSoon) Object.assign(job, { expiresAt: this.now + defaultExpiryTicks, isListed: true });
    if (!job.hasTurn) job.place = this.keyed.newPlace();
    Object.assign(job, { status: "pending", attempts: 0, abandonments: 0, dueAt: this.now, reason: null });
  }
}
