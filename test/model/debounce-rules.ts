// What the model knows of debounce and throttle: the last job of each key, and how long its list is.
import type { DebounceMode, EnqueueOutcome } from "../../src/core/job-options.ts";
import type { ModelJob, QueueModel } from "./queue-model.ts";

export const maxItems = 3;

export interface DebounceRequest {
  type: string;
  key: string;
  mode: DebounceMode;
  waitTicks: number;
  /** Null: no limit. */
  longestTicks: number | null;
}

export interface ThrottleRequest {
  type: string;
  key: string;
  ticks: number;
}

/** What a call must answer. `id`: the job that was there. */
interface Expected {
  outcome: EnqueueOutcome;
  id?: string;
}

export class DebounceRules {
  /** By type and key. */
  readonly #bound = new Map<string, { id: string; since: number }>();
  readonly #throttled = new Map<string, { id: string; until: number }>();
  readonly #items = new Map<string, number>();
  readonly #model: QueueModel;

  constructor(model: QueueModel) {
    this.#model = model;
  }

  /** The job that a call finds. `isUnclear`: a snoozed job is bound or not, depending on whether it is due again. */
  find({ type, key }: DebounceRequest): { job: ModelJob | null; isUnclear: boolean } {
    const job = this.#model.jobs.get(this.#bound.get(`${type} ${key}`)?.id ?? "");
    const waits =
      job?.status === "pending" && job.attempts === 0 && job.abandonments === 0 && job.failed === 0;
    const hasRun = this.#model.claims.some(({ id }) => id === job?.id);
    return { job: waits ? job : null, isUnclear: waits && hasRun };
  }

  expect(request: DebounceRequest, job: ModelJob | null): Expected {
    if (!job || (request.mode === "merge" && this.itemsOf(job.id) >= maxItems)) return { outcome: "created" };
    if (request.mode === "last") return { outcome: "replaced" };
    return { outcome: request.mode === "first" ? "kept" : "merged", id: job.id };
  }

  itemsOf(id: string): number {
    return this.#items.get(id) ?? 1;
  }

  /** `id` is the job of the answer, and `job` the one that was found. */
  apply(
    request: DebounceRequest,
    { id, outcome }: { id: string; outcome: string | null },
    job: ModelJob | null,
  ): void {
    const { now } = this.#model;
    const { type, key, mode, waitTicks, longestTicks } = request;
    if (mode === "merge" && job) {
      const items = this.itemsOf(job.id) + (outcome === "merged" ? 1 : 0);
      this.#items.set(job.id, items);
      if (items >= maxItems) job.dueAt = Math.min(job.dueAt, now);
    }
    if (outcome !== "created" && outcome !== "replaced") return;
    if (outcome === "replaced" && job) Object.assign(job, { status: "cancelled", hasTurn: false });
    const since = outcome === "replaced" ? (this.#bound.get(`${type} ${key}`)?.since ?? now) : now;
    const dueAt = Math.min(now + waitTicks, since + (longestTicks ?? Infinity));
    const delayTicks = Math.max(dueAt - now, 0);
    this.#model.add(id, { type, delayTicks, expiryTicks: null, maxAttempts: 2, key: null });
    this.#bound.set(`${type} ${key}`, { id, since });
  }

  throttle({ type, key, ticks }: ThrottleRequest): Expected & { apply(id: string): void } {
    const { now } = this.#model;
    const last = this.#throttled.get(`${type} ${key}`);
    if (last && last.until > now) return { outcome: "throttled", id: last.id, apply: () => {} };
    return {
      outcome: "created",
      apply: (id) => {
        this.#model.add(id, { type, delayTicks: 0, expiryTicks: null, maxAttempts: 2, key: null });
        this.#throttled.set(`${type} ${key}`, { id, until: now + ticks });
      },
    };
  }
}
