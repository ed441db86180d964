// The rules of keys in the model. Keys that begin with "p" are partition keys, those that begin with "f" are fair keys.
import type { ModelJob, QueueModel } from "./queue-model.ts";

export const anyKeys = [null, null, null, "p1", "p1", "p2", "f1", "f2"] as const;

export interface ModelPolicy {
  onDead: "block" | "pass";
  concurrency: number | null;
}

export const isOrdered = (job: { key: string | null }) => job.key?.startsWith("p") ?? false;
export const isFair = (job: { key: string | null }) => job.key?.startsWith("f") ?? false;

/**
 * When a job took its place in its key, as far as a client can tell: not before `from` and not after `to`. These are numbers
 * of events. Both are the same unless the job was committed late.
 */
export interface Place {
  from: number;
  to: number;
  transaction: number;
}

/** True if a client knows that one job came first. */
function isBefore(a: Place, b: Place): boolean {
  return a.transaction === b.transaction ? a.from < b.from : a.to < b.from;
}

export class KeyRules {
  readonly #model: QueueModel;
  #events = 0;
  /** Fair keys that may have a job which got its turn before the cap was lowered. It may start, and no other. */
  readonly #granted = new Set<string>();
  /** What the last claim said, and nothing before the queue had keys. */
  policy: ModelPolicy = { onDead: "block", concurrency: null };

  constructor(model: QueueModel) {
    this.#model = model;
  }

  nextEvent(): number {
    return ++this.#events;
  }

  newPlace(): Place {
    const event = this.nextEvent();
    return { from: event, to: event, transaction: event };
  }

  ofKey(key: string | null): ModelJob[] {
    return key === null ? [] : this.#model.all((job) => job.key === key);
  }

  holders(key: string | null): ModelJob[] {
    return this.ofKey(key).filter((job) => job.hasTurn);
  }

  /** The other jobs of a run that are still under its lease. */
  restOfRun(job: ModelJob): ModelJob[] {
    const isInRun = (other: ModelJob) =>
      other !== job && other.status === "processing" && other.leaseKey === job.leaseKey;
    return isOrdered(job) ? this.ofKey(job.key).filter(isInRun) : [];
  }

  isFirstOfRun(job: ModelJob): boolean {
    return !this.restOfRun(job).some((other) => other.claimedAt < job.claimedAt);
  }

  /** Delayed jobs that are due take their places at the end of their keys: a claim does that first. */
  promote(): void {
    const due = this.#model.all(
      (job) => job.key !== null && job.status === "pending" && !job.place && job.dueAt <= this.#model.now,
    );
    due.sort((a, b) => a.dueAt - b.dueAt || a.scheduling - b.scheduling);
    for (const job of due) job.place = this.newPlace();
  }

  /** A claim brings the policy along, but not to a paused queue. Dead jobs that must not block any more give up their turns. */
  apply(policy: ModelPolicy): void {
    if (!this.#model.all((job) => job.key !== null).length || this.#model.paused.has("queue default")) return;
    if ((policy.concurrency ?? Infinity) < (this.policy.concurrency ?? Infinity))
      for (const job of this.#model.all(({ status }) => status === "pending"))
        if (isFair(job)) this.#granted.add(job.key ?? "");
    this.policy = policy;
    if (policy.onDead === "pass")
      for (const job of this.#model.all(({ status }) => status === "dead")) job.hasTurn = false;
  }

  /** Whether nothing of its key keeps a pending job back. Jobs of a run come after each other under one lease. */
  isNext(job: ModelJob, leaseKey?: string): boolean {
    if (job.key === null) return true;
    if (isFair(job)) return this.#hasShare(job) || this.#granted.delete(job.key);
    const holders = this.holders(job.key);
    if (job.hasTurn) return true;
    if (holders.some((holder) => holder.status !== "processing" || holder.leaseKey !== leaseKey))
      return false;
    return !this.#waiting(job.key).some((other) => other !== job && precedes(other, job));
  }

  /** Jobs that are next whatever the order of late ones turns out to be. */
  isCertainlyNext(job: ModelJob): boolean {
    if (job.key === null) return true;
    const others = this.#waiting(job.key).filter((other) => other !== job);
    if (isOrdered(job))
      return this.isNext(job) && (job.hasTurn || others.every((other) => precedes(job, other)));
    return this.#hasShare(job);
  }

  #hasShare(job: ModelJob): boolean {
    const { concurrency } = this.policy;
    return concurrency === null || this.runningOf(job.key) < concurrency;
  }

  runningOf(key: string | null): number {
    return this.ofKey(key).filter((job) => job.status === "processing").length;
  }

  #waiting(key: string): ModelJob[] {
    return this.ofKey(key).filter((job) => job.status === "pending" && job.place !== null && !job.hasTurn);
  }
}

function precedes(a: ModelJob, b: ModelJob): boolean {
  return a.place !== null && b.place !== null && isBefore(a.place, b.place);
}
