// Records which jobs ran and how often. A number counts only if every job ran exactly once.
import { setTimeout as sleep } from "node:timers/promises";
import { type BenchPayload, type OpenQueue, payloadOf } from "../systems/system.ts";

export interface RunLog {
  /** The payloads of new jobs. */
  next(count: number): BenchPayload[];
  enqueued(): number;
  completed(): number;
  /** Jobs that ran after a later job of the same key. */
  outOfOrder(): number;
  /** A worker calls this when a job has run. */
  run(payload: BenchPayload): true;
  /** Waits until all enqueued jobs have run. */
  allRun(withinMs?: number): Promise<void>;
  /** Waits until all enqueued jobs have run, or for this time. */
  allRunOr(ms: number): Promise<void>;
  /** Throws if a job ran after a later one of its key. */
  checkOrder(): void;
  /** Throws unless each job has run once and the system has no unfinished jobs. */
  check(queue: OpenQueue): Promise<void>;
}

const pollMs = 1;
const patienceMs = 120_000;

export function createRunLog(keyOf?: (n: number) => string): RunLog {
  const runs: number[] = [];
  const lastOfKey = new Map<string, number>();
  let completed = 0;
  let outOfOrder = 0;
  return {
    next(count) {
      const payloads = Array.from({ length: count }, (_, index) => {
        const n = runs.length + index;
        return payloadOf(n, keyOf?.(n));
      });
      for (let index = 0; index < count; index++) runs.push(0);
      return payloads;
    },
    enqueued: () => runs.length,
    completed: () => completed,
    outOfOrder: () => outOfOrder,
    run({ n, key }) {
      runs[n] = (runs[n] ?? 0) + 1;
      completed++;
      if (key !== undefined) {
        const last = lastOfKey.get(key) ?? -1;
        if (n < last) outOfOrder++;
        else lastOfKey.set(key, n);
      }
      return true;
    },
    async allRun(withinMs = patienceMs) {
      await until(() => completed >= runs.length, withinMs);
    },
    async allRunOr(ms) {
      const endMs = performance.now() + ms;
      await until(() => completed >= runs.length || performance.now() > endMs, 2 * ms);
    },
    checkOrder() {
      if (outOfOrder > 0) throw new Error(`${outOfOrder} of ${runs.length} jobs ran out of order`);
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
