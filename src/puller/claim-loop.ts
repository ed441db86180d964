// Claims jobs of one queue while there are free slots, and hands them on as runs. A claim that was sent is always awaited:
// its jobs are leased, and somebody must work on them or release them.
import { SluiceRequestError } from "../client/request-error.ts";
import { sleep } from "../client/send.ts";
import { backoffMs, idlePauseMs } from "./backoff.ts";
import type { ClaimedJob, Settings } from "./options.ts";
import type { Requests } from "./requests.ts";
import type { Slots } from "./slots.ts";

export interface ClaimLoop {
  settings: Settings;
  requests: Requests;
  slots: Slots;
  /** Starts a run, which gives its slot back when it has ended. `sentMs` is when the claim was sent. */
  start(run: readonly ClaimedJob[], sentMs: number): void;
  /** Aborted when there are no more claims. */
  stopping: AbortSignal;
  /** Aborted when nothing may take any longer. */
  ending: AbortSignal;
}

interface Claim {
  queue: string;
  limit: number;
  waitSeconds: number;
}

type Result = { jobs: number; ms: number } | { error: SluiceRequestError };

/** The request or the key is wrong, and a later one would not be better. */
const finalStatuses = [400, 401, 403, 413, 415, 422];
/** An empty answer that came before this did not wait for a job. */
const quickMs = 900;

/** Resolves when the puller stops. Rejects if the server refuses the claim for good. */
export async function runClaimLoop(queue: string, loop: ClaimLoop): Promise<void> {
  const { settings, slots, stopping } = loop;
  const sharesSlots = settings.queues.length > 1;
  let hadJobs = false;
  let inVain = 0;
  for (;;) {
    // While other queues need the slots too, a claim that waits for a first job keeps only one of them.
    const free = await slots.take(sharesSlots && !hadJobs ? 1 : settings.concurrency);
    if (free === 0) return;
    const waitSeconds = sharesSlots && hadJobs ? 0 : settings.waitSeconds;
    const result = await claimOnce(loop, { queue, limit: free, waitSeconds });
    const mayWaitNext = sharesSlots && hadJobs;
    hadJobs = "jobs" in result && result.jobs > 0;
    if (hadJobs) inVain = 0;
    else if ("error" in result) await sleep(result.error.retryAfterMs + backoffMs(++inVain), stopping);
    else if (result.ms >= quickMs) {
      inVain = 0;
      await sleep(idlePauseMs(), stopping);
    } else if (!mayWaitNext) await sleep(backoffMs(++inVain), stopping);
  }
}

async function claimOnce(loop: ClaimLoop, claim: Claim): Promise<Result> {
  const { settings, requests, slots, start, ending } = loop;
  const sentMs = Date.now();
  try {
    const { jobs } = await requests.claim({ ...claim, signal: ending });
    const runs = toRuns(jobs);
    slots.give(claim.limit - runs.length);
    if (jobs.length > 0) settings.log("claimed", { queue: claim.queue, jobs: jobs.length });
    for (const run of runs) start(run, sentMs);
    return { jobs: jobs.length, ms: Date.now() - sentMs };
  } catch (error) {
    slots.give(claim.limit);
    if (!(error instanceof SluiceRequestError) || finalStatuses.includes(error.status)) throw error;
    if (!ending.aborted) settings.onError(error);
    return { error };
  }
}

/** Jobs of one run are worked one after another. Any other job is a run of its own. */
function toRuns(jobs: readonly ClaimedJob[]): ClaimedJob[][] {
  const runs = new Map<string, ClaimedJob[]>();
  for (const job of jobs) {
    const name = job.run ? `run ${job.run}` : job.job_id;
    const run = runs.get(name);
    if (run) run.push(job);
    else runs.set(name, [job]);
  }
  return [...runs.values()];
}
