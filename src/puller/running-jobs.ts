// The claimed jobs of a puller: runs their handlers, the jobs of one run one after another, and hands each outcome to the
// settler.
import { CancelledError, LeaseLostError } from "../core/errors.ts";
import type { ClaimedJob, Settings } from "./options.ts";
import type { Requests } from "./requests.ts";
import { type HandlerRun, released, StoppedError, startHandler } from "./run-handler.ts";
import type { Settler } from "./settler.ts";
import type { Slots } from "./slots.ts";

/** A job whose lease the puller holds. */
export interface HeldJob {
  readonly job: ClaimedJob;
  /** When the latest request that got or extended its lease was sent. */
  leasedAtMs: number;
  isLost: boolean;
  isCancelled: boolean;
  /** Null until its turn in its run has come. */
  handler: HandlerRun | null;
}

export interface RunningJobs {
  start(run: readonly ClaimedJob[], sentMs: number): void;
  held(): HeldJob[];
  /** Stops the handler: what it does no longer counts. */
  lose(held: HeldJob, message: string): void;
  /** Stops the handler, or does not start it. Its job is released, and the database ends it as cancelled. */
  cancel(held: HeldJob): void;
  /** Resolves when no handler runs. */
  allEnded(): Promise<void>;
}

export function createRunningJobs(options: {
  settings: Settings;
  requests: Requests;
  slots: Slots;
  settler: Settler;
  stopping: AbortSignal;
  ending: AbortSignal;
}): RunningJobs {
  const { settings, requests, slots, settler, stopping, ending } = options;
  const held = new Set<HeldJob>();
  const runs = new Set<Promise<void>>();

  async function work(run: readonly HeldJob[]): Promise<void> {
    for (const [index, one] of run.entries()) {
      if (stopping.aborted || one.isLost || one.isCancelled) return release(run.slice(index));
      const hasCompleted = await workOne(one);
      if (one.isLost) return release(run.slice(index + 1));
      // The database sends the rest of the run back together with the failed job.
      if (!hasCompleted) return;
    }
  }

  async function workOne(one: HeldJob): Promise<boolean> {
    one.handler = startHandler(one.job, settings, requests);
    const { settlement, error } = await one.handler.end;
    held.delete(one);
    if (error) report(one.job, error);
    if (settlement) settler.add(one.job, settlement);
    return settlement?.outcome === "complete";
  }

  /** The first one is enough: the database sends the rest of the run back with it. */
  function release([first]: readonly HeldJob[]): void {
    if (first) settler.add(first.job, released(first.job));
  }

  function report({ job_id: jobId, type, queue, attempt }: ClaimedJob, error: Error): void {
    settings.log("attempt failed", { job_id: jobId, type, queue, attempt, message: error.message });
    settings.onError(error, { jobId, type, queue, attempt });
  }

  ending.addEventListener("abort", () => {
    for (const { handler } of held) handler?.abort(new StoppedError("the puller has stopped"));
  });

  return {
    start(jobs, sentMs) {
      const run = jobs.map(
        (job): HeldJob => ({ job, leasedAtMs: sentMs, isLost: false, isCancelled: false, handler: null }),
      );
      for (const one of run) held.add(one);
      const ended = work(run).finally(() => {
        for (const one of run) held.delete(one);
        runs.delete(ended);
        slots.give(1);
        if (held.size === 0) settler.hurry();
      });
      runs.add(ended);
    },
    held: () => [...held],
    lose(one, message) {
      one.isLost = true;
      held.delete(one);
      one.handler?.abort(new LeaseLostError(message));
    },
    cancel(one) {
      one.isCancelled = true;
      one.handler?.abort(new CancelledError("the job was cancelled"));
    },
    async allEnded() {
      while (runs.size > 0) await Promise.all(runs);
    },
  };
}
