// The turns of partition keys and fair keys that the puller holds. When it has settled such a job, the next one of the key
// can be claimed at once. A claim that waits on the server would find it only later, so there is none while turns are held.
import { sleep } from "../client/send.ts";
import type { ClaimedJob } from "./options.ts";

export interface KeyTurns {
  areHeld(): boolean;
  /** How often turns were returned. */
  returns(): number;
  /** Says that these jobs are settled. */
  markSettled(jobs: readonly ClaimedJob[]): void;
  /** Ends early when turns are returned, or were returned since `returns` was read. */
  waitForReturn(options: { returns: number; ms: number; signal: AbortSignal }): Promise<void>;
}

/** `unsettledJobs` lists the jobs that run, that wait in a run, and that are being settled. */
export function createKeyTurns(unsettledJobs: () => readonly ClaimedJob[]): KeyTurns {
  let count = 0;
  const waiting = new Set<AbortController>();
  return {
    areHeld: () => unsettledJobs().some(hasKey),
    returns: () => count,
    markSettled(jobs) {
      if (!jobs.some(hasKey)) return;
      count++;
      for (const wait of waiting) wait.abort();
    },
    async waitForReturn({ returns, ms, signal }) {
      if (count > returns || signal.aborted) return;
      const wait = new AbortController();
      const end = () => wait.abort();
      signal.addEventListener("abort", end);
      waiting.add(wait);
      await sleep(ms, wait.signal);
      waiting.delete(wait);
      signal.removeEventListener("abort", end);
    },
  };
}

function hasKey({ run, fair_key }: ClaimedJob): boolean {
  return Boolean(run) || Boolean(fair_key);
}
