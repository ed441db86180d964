// The handlers in flight of one drain: starts them, collects their outcomes, and lets the drain wait for what it needs.
import type { ClaimedJob, Settlement } from "../../core/job.ts";
import type { JobType, Ports } from "../ports.ts";
import { type Run, startRun } from "./run-job.ts";

/** The lease went to somebody else while the handler ran: what it does from now on counts for nothing. */
export class LeaseLostError extends Error {
  override readonly name = "LeaseLostError";
}

/** What became of a claimed job, not settled yet. */
export interface Landing extends Settlement {
  job: ClaimedJob;
}

export interface Flights {
  /** Jobs whose handlers run. */
  size(): number;
  jobs(): ClaimedJob[];
  start(type: JobType, jobs: readonly ClaimedJob[]): void;
  /** Outcomes that came in since the last call. */
  takeLanded(): Landing[];
  landed(): number;
  /** Until the time is over, every handler has ended, or (if asked) any has. */
  wait(options: { ms: number; forAny: boolean }): Promise<void>;
  abort(ids: ReadonlySet<string>): void;
}

export function createFlights(ports: Ports, hardEndMs: number): Flights {
  const runs = new Set<Run>();
  const landed: Landing[] = [];
  let wake = () => {};

  const start = (type: JobType, jobs: readonly ClaimedJob[]) => {
    const run = startRun(ports, type, jobs, hardEndMs);
    runs.add(run);
    run.outcomes.then((outcomes) => {
      runs.delete(run);
      jobs.forEach((job, index) => {
        landed.push({ job, outcome: outcomes[index] ?? { kind: "release" } });
      });
      wake();
    });
  };

  return {
    size: () => sum(runs),
    jobs: () => [...runs].flatMap((run) => run.jobs),
    start(type, jobs) {
      if (type.work.kind === "batch") start(type, jobs);
      else for (const job of jobs) start(type, [job]);
    },
    takeLanded: () => landed.splice(0),
    landed: () => landed.length,
    async wait({ ms, forAny }) {
      const before = landed.length;
      const untilMs = ports.clock.nowMs() + ms;
      while (runs.size > 0 && !(forAny && landed.length > before)) {
        const leftMs = untilMs - ports.clock.nowMs();
        if (leftMs <= 0) return;
        await wakeOrTime(leftMs);
      }
    },
    abort(ids) {
      for (const run of runs) {
        // A batch goes on for the jobs that it still holds.
        if (run.jobs.every((job) => ids.has(job.id))) run.abort(new LeaseLostError("the lease is lost"));
      }
    },
  };

  function wakeOrTime(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

function sum(runs: Iterable<Run>): number {
  let jobs = 0;
  for (const run of runs) jobs += run.jobs.length;
  return jobs;
}
