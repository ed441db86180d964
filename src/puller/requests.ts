// The requests of a puller.
import { createSend } from "../client/send.ts";
import type {
  ChildrenResponse,
  ClaimResponse,
  ExtensionsResponse,
  SettlementsResponse,
  StepsResponse,
  WaitedResponse,
} from "../contract/work.ts";
import type { NewStep, Wait } from "../core/job.ts";
import type { Settings } from "./options.ts";

/** What identifies a claimed job in a request. */
export interface LeasedJob {
  job_id: string;
  lease: string;
}

export type Settlement = LeasedJob &
  (
    | { outcome: "complete"; output: unknown; next?: object }
    | { outcome: "fail"; error: string; fatal?: boolean; retry_in_seconds?: number | undefined }
    | { outcome: "release" }
    | ({ outcome: "suspend" } & Wait)
  );

export interface Requests {
  /** It is sent once: the claim loop has its own backoff. */
  claim(options: {
    queue: string;
    limit: number;
    waitSeconds: number;
    signal: AbortSignal;
  }): Promise<ClaimResponse>;
  settle(settlements: readonly Settlement[], signal: AbortSignal): Promise<SettlementsResponse>;
  extend(jobs: readonly LeasedJob[], signal: AbortSignal): Promise<ExtensionsResponse>;
  /** Without steps it answers with all that are stored. */
  storeSteps(job: LeasedJob, steps: readonly NewStep[], signal: AbortSignal): Promise<StepsResponse>;
  /** Enqueues jobs, each once for its idempotency key. */
  startChildren(
    job: LeasedJob & { traceparent: string | null },
    jobs: readonly object[],
    signal: AbortSignal,
  ): Promise<ChildrenResponse>;
  findWaited(
    job: LeasedJob,
    wait: Pick<Wait, "signal" | "jobs">,
    signal: AbortSignal,
  ): Promise<WaitedResponse>;
  register(signal: AbortSignal): Promise<void>;
  leave(signal: AbortSignal): Promise<void>;
}

/** The server's own time for one request, without the wait of a claim. */
const answerMs = 15_000;
/** An extension that fails is tried again in any case, and the puller must notice a lease that has run out. */
const longestExtendMs = 10_000;

export function createRequests(settings: Settings): Requests {
  const { url, key, fetch, workerId, queues, handlers, leaseSeconds, maxRun } = settings;
  const send = createSend({ url, key, ...(fetch && { fetch }) });
  return {
    claim({ queue, limit, waitSeconds, signal }) {
      const body = {
        worker_id: workerId,
        queue,
        types: [...handlers.keys()],
        limit,
        lease_seconds: leaseSeconds,
        wait_seconds: waitSeconds,
        max_run: maxRun,
      };
      const timeoutMs = waitSeconds * 1000 + answerMs;
      return send("POST", "/v1/claims", {
        body,
        timeoutMs,
        tryTimeoutMs: timeoutMs,
        isRetried: false,
        signal,
      });
    },
    settle: (settlements, signal) => send("POST", "/v1/settlements", { body: { settlements }, signal }),
    extend(jobs, signal) {
      const extensions = jobs.map(({ job_id, lease }) => ({ job_id, lease }));
      const body = { extensions, lease_seconds: leaseSeconds };
      const timeoutMs = Math.min(longestExtendMs, (leaseSeconds * 1000) / 3);
      return send("POST", "/v1/extensions", { body, timeoutMs, signal });
    },
    storeSteps({ job_id, lease }, steps, signal) {
      const body = { lease, lease_seconds: leaseSeconds, steps };
      return send("POST", `/v1/jobs/${encodeURIComponent(job_id)}/steps`, { body, signal });
    },
    startChildren({ job_id, lease, traceparent }, jobs, signal) {
      const body = { lease, lease_seconds: leaseSeconds, jobs };
      const headers = { ...(traceparent && { traceparent }) };
      return send("POST", `/v1/jobs/${encodeURIComponent(job_id)}/children`, { body, headers, signal });
    },
    findWaited({ job_id, lease }, wait, signal) {
      const body = { lease, lease_seconds: leaseSeconds, ...wait };
      return send("POST", `/v1/jobs/${encodeURIComponent(job_id)}/waited`, { body, signal });
    },
    register: (signal) =>
      send("POST", "/v1/workers", { body: { worker_id: workerId, queues }, isRetried: false, signal }),
    leave: (signal) =>
      send("DELETE", `/v1/workers/${encodeURIComponent(workerId)}`, { timeoutMs: 2_000, signal }),
  };
}
