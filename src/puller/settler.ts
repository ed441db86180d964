// Settles ended jobs, many with one request. It sends a request again until it gets through: a repeated settlement changes
// nothing.
import { SluiceRequestError } from "../client/request-error.ts";
import { sleep } from "../client/send.ts";
import { LeaseLostError } from "../core/errors.ts";
import { backoffMs } from "./backoff.ts";
import type { ClaimedJob, Settings } from "./options.ts";
import type { Requests, Settlement } from "./requests.ts";

export interface Settler {
  add(job: ClaimedJob, settlement: Settlement): void;
  /** Says that no other job runs, so there is nothing to wait for. */
  hurry(): void;
  /** The jobs that are not settled yet. */
  jobs(): ClaimedJob[];
  /** Resolves when there is nothing to settle. */
  allSettled(): Promise<void>;
}

interface EndedJob {
  job: ClaimedJob;
  settlement: Settlement;
}

/** How long an outcome waits for others. */
const togetherMs = 50;
/** The server's limit for one request. */
const maxSettlements = 1000;
/** One settlement is bad, or the request is too large. */
const refusals = [400, 413, 422];
const forbidden = [401, 403];

export function createSettler(options: {
  settings: Settings;
  requests: Requests;
  /** Aborted when what is not settled must be given up. */
  givingUp: AbortSignal;
  /** Called when jobs are settled or given up. */
  onSettled(jobs: readonly ClaimedJob[]): void;
}): Settler {
  const { settings, requests, givingUp, onSettled } = options;
  const ended: EndedJob[] = [];
  let sent: EndedJob[] = [];
  /** Runs with a job that could not be settled. It will run again, so nothing behind it may be settled. */
  const brokenRuns = new Set<string>();
  let settling: Promise<void> | null = null;
  let together = new AbortController();

  async function settleAll(): Promise<void> {
    while (ended.length > 0) {
      await sleep(togetherMs, together.signal);
      together = new AbortController();
      sent = ended.splice(0, maxSettlements);
      await settle(sent);
      const jobs = sent.map(({ job }) => job);
      sent = [];
      onSettled(jobs);
    }
    settling = null;
  }

  async function settle(jobs: readonly EndedJob[]): Promise<void> {
    const batch = jobs.filter(({ job }) => !brokenRuns.has(idOfRun(job)));
    if (batch.length === 0) return;
    const settlements = batch.map(({ settlement }) => settlement);
    for (let failures = 1; ; failures++) {
      try {
        const answer = await requests.settle(settlements, givingUp);
        settings.log("settled", { jobs: batch.length });
        for (const [index, one] of batch.entries()) checkAnswer(one, answer.settlements[index]);
        return;
      } catch (error) {
        if (!(error instanceof SluiceRequestError)) throw error;
        if (refusals.includes(error.status)) return settleApart(batch, error);
        if (forbidden.includes(error.status) || givingUp.aborted) return giveUp(batch, error);
        settings.onError(error);
        await sleep(error.retryAfterMs + backoffMs(failures), givingUp);
      }
    }
  }

  /** The server refuses the whole request for one bad settlement. An output that it does not take makes its job dead. */
  async function settleApart(batch: readonly EndedJob[], error: SluiceRequestError): Promise<void> {
    const middle = Math.ceil(batch.length / 2);
    const [first] = batch;
    if (batch.length > 1) {
      await settle(batch.slice(0, middle));
      await settle(batch.slice(middle));
    } else if (first?.settlement.outcome === "complete") {
      const { job_id, lease } = first.settlement;
      const message = `the output cannot be kept: ${error.message}`;
      await settle([
        { job: first.job, settlement: { job_id, lease, outcome: "fail", fatal: true, error: message } },
      ]);
    } else giveUp(batch, error);
  }

  function checkAnswer(one: EndedJob, answer?: { applied: boolean; repeated: boolean }): void {
    const isRefused = answer && !answer.applied && !answer.repeated;
    // A release that did not apply does no harm: the job is pending already, or another worker has it.
    if (isRefused && one.settlement.outcome !== "release")
      giveUp([one], new LeaseLostError("the job could not be settled, since its lease is lost"));
  }

  /** The jobs run again when their leases have run out. */
  function giveUp(batch: readonly EndedJob[], error: Error): void {
    for (const { job } of batch) {
      if (job.run) brokenRuns.add(idOfRun(job));
      const { job_id: jobId, type, queue, attempt } = job;
      settings.log("not settled", { job_id: jobId, type, queue, attempt, message: error.message });
      settings.onError(error, { jobId, type, queue, attempt });
    }
  }

  return {
    add(job, settlement) {
      ended.push({ job, settlement });
      settling ??= settleAll();
    },
    hurry: () => together.abort(),
    jobs: () => [...sent, ...ended].map(({ job }) => job),
    allSettled: async () => settling ?? undefined,
  };
}

/** A later claim of the same key has another generation. */
function idOfRun({ run, lease_generation }: ClaimedJob): string {
  return `${run} ${lease_generation}`;
}
