// Records which jobs ran and how often. A number counts only if every job ran exactly once.
import { setTimeout as sleep } from "node:timers/promises";
import { type BenchPayload, type OpenQueue, payloadOf } from "../systems/system.ts";

export interface RunLog {
  /** The payloads of new jobs. */
  next(count: number): BenchPayload[];
  enqueued(): number;
  completed(): number;
  /** A worker calls this when a job has run. */
  run(payload: BenchPayload): true;
  /** Waits until all enqueued jobs have run. */
  allRun(withinMs?: number): Promise<void>;
  /** Throws unless each job has run once and the system has no unfinished jobs. */
  check(queue: OpenQueue): Promise<void>;
}

const pollMs = 1;
const patienceMs = 120_000;

export function createRunLog(): RunLog {
  const runs: number[] = [];
  let completed = 0;
  return {
    next(count) {
      const payloads = Array.from({ length: count }, (_, index) => payloadOf(runs.length + index));
      for (let index = 0; index < count; index++) runs.push(0);
      return payloads;
    },
    enqueued: () => runs.length,
    completed: () => completed,
    run({ n }) {
      runs[n] = (runs[n] ?? 0) + 1;
      completed++;
      return true;
    },
    async allRun(withinMs = patienceMs) {
      await until(() => completed >= runs.length, withinMs);
    },
    async check(queue) {
      const wrong = runs.filter((times) => times !== 1).length;
      if (wrong > 0) throw new Error(`${wrong} of ${runs.length} jobs did not run exactly once`);
      const left = await queue.unfinished();
      if (left !== 0) throw new Error(`${left} of ${runs.length} jobs are not finished`);
    },
  };
}

export async function until(isSo: () => boolean, withinMs = patienceMs): Promise<void> {
  const giveUpMs = performance.now() + withinMs;
  while (!isSo()) {
    if (performance.now() > giveUpMs) throw new Error(`not done within ${withinMs / 1000} s`);
    await sleep(pollMs);
  }
}
