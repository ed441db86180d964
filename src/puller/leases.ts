// Extends the leases of all jobs that the puller holds, with one request. A job whose lease is lost is told to stop, and so is
// a job that somebody cancelled.
import { SluiceRequestError } from "../client/request-error.ts";
import { sleep } from "../client/send.ts";
import type { Settings } from "./options.ts";
import type { Requests } from "./requests.ts";
import type { HeldJob, RunningJobs } from "./running-jobs.ts";

/** The server's limit for one request. */
const maxExtensions = 1000;
const tryAgainMs = 1_000;
/** The answer tells which jobs were cancelled. A job is asked for within one and a half times this time. */
const longestMs = 6_000;

/** Resolves when the signal is aborted. A lease lasts at least three times as long as the time between two extensions. */
export async function keepLeases(options: {
  settings: Settings;
  requests: Requests;
  running: RunningJobs;
  ended: AbortSignal;
}): Promise<void> {
  const { settings, requests, running, ended } = options;
  const leaseMs = settings.leaseSeconds * 1000;
  const everyMs = Math.min(leaseMs / 3, longestMs);
  let waitMs = everyMs;
  while (!ended.aborted) {
    await sleep(waitMs, ended);
    waitMs = everyMs;
    // A lease that is new has time until the next round.
    const old = running.held().filter(({ leasedAtMs }) => Date.now() - leasedAtMs >= everyMs / 2);
    for (let start = 0; start < old.length && !ended.aborted; start += maxExtensions) {
      if (!(await extend(old.slice(start, start + maxExtensions)))) waitMs = Math.min(tryAgainMs, everyMs);
    }
  }

  async function extend(jobs: readonly HeldJob[]): Promise<boolean> {
    const sentMs = Date.now();
    try {
      const { extensions } = await requests.extend(
        jobs.map(({ job }) => job),
        ended,
      );
      for (const [index, held] of jobs.entries()) {
        const answer = extensions[index];
        if (answer?.lease_expires_at) held.leasedAtMs = sentMs;
        else loseIfHeld(held, "the lease is lost");
        if (answer?.cancel_requested) running.cancel(held);
      }
      return true;
    } catch (error) {
      if (!(error instanceof SluiceRequestError)) throw error;
      if (!ended.aborted) settings.onError(error);
      for (const held of jobs)
        if (Date.now() - held.leasedAtMs >= leaseMs)
          loseIfHeld(held, "the lease could not be extended in time");
      return false;
    }
  }

  /** A job that was settled meanwhile has no lease any more. */
  function loseIfHeld(held: HeldJob, message: string): void {
    if (running.held().includes(held)) running.lose(held, message);
  }
}
