// The jobs of one drain whose handlers run: starts them, collects their outcomes, and lets the drain wait for them.
import { LeaseLostError } from "../../core/errors.ts";
import type { ClaimedJob } from "../../core/job.ts";
import type { JobType, Ports } from "../ports.ts";
import type { EndedAttempt } from "../settle.ts";
import { type Run, startRun } from "./run-job.ts";

/** A job whose attempt has ended and is not settled yet. */
export interface EndedJob extends EndedAttempt {
  job: ClaimedJob;
}

export interface RunningJobs {
  size(): number;
  jobs(): ClaimedJob[];
  start(type: JobType, jobs: readonly ClaimedJob[]): void;
  endedCount(): number;
  /** What has ended since the last call. */
  takeEnded(): EndedJob[];
  /** Until another job has ended, all have, or the time is over. */
  waitForAny(ms: number): Promise<void>;
  /** Until all jobs have ended or the time is over. */
  waitForAll(ms: number): Promise<void>;
  /** Stops the handlers of these jobs. */
  abort(ids: ReadonlySet<string>): void;
}

export function createRunningJobs(ports: Ports, { endMs }: { endMs: number }): RunningJobs {
  const runs = new Set<Run>();
  const ended: EndedJob[] = [];
  let wake = () => {};

  async function start(type: JobType, jobs: readonly ClaimedJob[]): Promise<void> {
    const run = startRun(ports, type, jobs, endMs);
    runs.add(run);
    const outcomes = await run.outcomes;
    runs.delete(run);
    for (const [index, job] of jobs.entries())
      ended.push({ job, outcome: outcomes[index] ?? { kind: "release" } });
    wake();
  }

  async function wait(ms: number, isEnough: () => boolean): Promise<void> {
    const untilMs = ports.clock.nowMs() + ms;
    while (runs.size > 0 && !isEnough() && ports.clock.nowMs() < untilMs) {
      const woken = Promise.withResolvers<void>();
      wake = woken.resolve;
      const cancel = ports.clock.setTimer(untilMs - ports.clock.nowMs(), wake);
      await woken.promise;
      cancel();
    }
  }

  return {
    size: () => [...runs].reduce((sum, run) => sum + run.jobs.length, 0),
    jobs: () => [...runs].flatMap((run) => run.jobs),
    start(type, jobs) {
      if (type.work.kind === "batch") start(type, jobs);
      else for (const job of jobs) start(type, [job]);
    },
    endedCount: () => ended.length,
    takeEnded: () => ended.splice(0),
    waitForAny(ms) {
      const before = ended.length;
      return wait(ms, () => ended.length > before);
    },
    waitForAll: (ms) => wait(ms, () => false),
    abort(ids) {
      for (const run of runs) {
        // A batch goes on for the jobs whose leases it still has.
        if (run.jobs.every((job) => ids.has(job.id))) run.abort(new LeaseLostError("the lease is lost"));
      }
    },
  };
}
