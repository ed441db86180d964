// Claims jobs of one queue while there are free slots, and hands them on as runs. A claim that was sent is always awaited:
// its jobs are leased, and somebody must work on them or release them.
import { SluiceRequestError } from "../client/request-error.ts";
import { sleep } from "../client/send.ts";
import { backoffMs, idlePauseMs } from "./backoff.ts";
import type { KeyTurns } from "./key-turns.ts";
import type { ClaimedJob, Settings } from "./options.ts";
import type { Requests } from "./requests.ts";
import type { Slots } from "./slots.ts";

export interface ClaimLoop {
  settings: Settings;
  requests: Requests;
  slots: Slots;
  turns: KeyTurns;
  /** Starts a run, which gives its slot back when it has ended. `sentMs` is when the claim was sent. */
  start(run: readonly ClaimedJob[], sentMs: number): void;
  /** Aborted when there are no more claims. */
  stopping: AbortSignal;
  /** Aborted when no request may take any longer. */
  givingUp: AbortSignal;
}

interface Claim {
  queue: string;
  limit: number;
  waitSeconds: number;
}

interface Result {
  jobs: number;
  ms: number;
  error?: SluiceRequestError;
}

/** The request or the key is wrong, and a later one would not be better. */
const finalStatuses = [400, 401, 403, 413, 415, 422];
/** An empty answer that came before this did not wait for a job. */
const quickMs = 900;

/** Resolves when the puller stops. Rejects if the server refuses the claim for good. */
export async function runClaimLoop(queue: string, loop: ClaimLoop): Promise<void> {
  const { settings, slots, turns, stopping } = loop;
  const sharesSlots = settings.queues.length > 1;
  let hadJobs = false;
  let timesInVain = 0;
  for (;;) {
    // While other queues need the slots too, a claim that waits for a first job keeps only one of them.
    const free = await slots.take(sharesSlots && !hadJobs ? 1 : settings.concurrency);
    if (free === 0) return;
    const isBrief = (sharesSlots && hadJobs) || turns.areHeld();
    const returns = turns.returns();
    const waitSeconds = isBrief ? 0 : settings.waitSeconds;
    const { jobs, ms, error } = await claimOnce(loop, { queue, limit: free, waitSeconds });
    hadJobs = jobs > 0;
    const isInVain = error || (!hadJobs && !isBrief && ms < quickMs);
    timesInVain = isInVain ? timesInVain + 1 : 0;
    if (isInVain) await sleep((error?.retryAfterMs ?? 0) + backoffMs(timesInVain), stopping);
    else if (turns.areHeld() && !hadJobs)
      await turns.waitForReturn({ returns, ms: idlePauseMs(), signal: stopping });
    else if (!isBrief && !hadJobs) await sleep(idlePauseMs(), stopping);
  }
}

async function claimOnce(loop: ClaimLoop, claim: Claim): Promise<Result> {
  const { settings, requests, slots, start, givingUp } = loop;
  const sentMs = Date.now();
  try {
    const { jobs } = await requests.claim({ ...claim, signal: givingUp });
    const runs = toRuns(jobs);
    slots.give(claim.limit - runs.length);
    if (jobs.length > 0) settings.log("claimed", { queue: claim.queue, jobs: jobs.length });
    for (const run of runs) start(run, sentMs);
    return { jobs: jobs.length, ms: Date.now() - sentMs };
  } catch (error) {
    slots.give(claim.limit);
    if (!(error instanceof SluiceRequestError) || finalStatuses.includes(error.status)) throw error;
    if (!givingUp.aborted) settings.onError(error);
    return { jobs: 0, ms: Date.now() - sentMs, error };
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
