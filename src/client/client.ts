// sluice/client: enqueue jobs and read their state, from anywhere that has `fetch`. Every enqueue carries an idempotency
// key, so a request whose answer was lost can be sent again without creating a second job. It has no dependencies.
import type { ChainResponse, FlowMadeResponse, SignalResponse } from "../contract/flows.ts";
import type {
  BatchResponse,
  Debounce,
  EnqueueOutcome,
  EnqueueResponse,
  JobResponse,
  MergeDebounce,
  PlainDebounce,
} from "../contract/jobs.ts";
import { type After, describeFlow, type FlowBuilder, toLists } from "../core/flow.ts";
import type { FlowIds, JobId, OutputOf, PayloadOf, TypedJob } from "../core/typed-job.ts";
import type {
  Client,
  ClientOptions,
  EndedJob,
  Enqueued,
  EnqueuedFlow,
  EnqueueManyOptions,
  EnqueueOptions,
  FlowJobOptions,
  Job,
  MergeManyOptions,
  MergeOptions,
  WaitOptions,
} from "./client-types.ts";
import { camelCased, snakeCased } from "./field-names.ts";
import { SluiceRequestError, SluiceTimeoutError } from "./request-error.ts";
import { createSend, type Fetch, type Send, sleep } from "./send.ts";

export type {
  Client,
  ClientOptions,
  EndedJob,
  Enqueued,
  EnqueuedFlow,
  EnqueueManyOptions,
  EnqueueOptions,
  EnqueueOutcome,
  Fetch,
  FlowBuilder,
  FlowIds,
  FlowJobOptions,
  Job,
  JobId,
  MergeDebounce,
  MergeManyOptions,
  MergeOptions,
  OutputOf,
  PayloadOf,
  PlainDebounce,
  TypedJob,
  WaitOptions,
};
export { SluiceRequestError, SluiceTimeoutError };

const batchSize = 100;
/** The last poll of a `wait` starts at its deadline. It must have time to succeed. */
const shortestLookMs = 1_000;
const finished: readonly string[] = ["completed", "dead", "discarded", "cancelled"] satisfies Job["status"][];

export function createClient<Jobs extends Record<string, TypedJob> = Record<never, never>>(
  options: ClientOptions<Jobs>,
): Client<Jobs> {
  const send = createSend(options);

  const { look, lookAtLast, unlessDone } = createLooks(send);

  return {
    async enqueue(job, ...[payload, options]) {
      return (await enqueueOne(send, job, payload, options)).job_id as never;
    },

    async enqueueWithOutcome(job, ...[payload, options]) {
      return toEnqueued(await enqueueOne(send, job, payload, options)) as never;
    },

    async enqueueMany(job, ...[payloads, options = {}]) {
      const { idempotencyKey = () => crypto.randomUUID(), ...given } = options as EnqueueManyOptions<unknown>;
      const jobs = payloads.map((payload, index) =>
        newJob(job, payload, { ...given, idempotencyKey: idempotencyKey(payload, index) }),
      );
      const ids: string[] = [];
      for (let start = 0; start < jobs.length; start += batchSize) {
        const body = { jobs: jobs.slice(start, start + batchSize) };
        const answer = await send<BatchResponse>("POST", "/v1/jobs/batch", { body });
        ids.push(...answer.jobs.map((made) => made.job_id));
      }
      return ids as never;
    },

    async enqueueFlow(describe, { idempotencyKey = crypto.randomUUID() } = {}) {
      const { jobs, toIds } = describeFlow(describe);
      const body = {
        jobs: jobs.map(({ ref, job, payload, options, after }) => ({
          ...newJob(job, payload, options),
          ref,
          after,
        })),
      };
      const headers = { "idempotency-key": idempotencyKey };
      const made = await send<FlowMadeResponse>("POST", "/v1/flows", { body, headers });
      return { flowId: made.flow_id, jobs: toIds(made.jobs.map(({ job_id }) => job_id)) };
    },

    get: (id) => look(id),

    async wait(id, { timeoutMs = 30_000, intervalMs = 500 } = {}) {
      const deadline = Date.now() + timeoutMs;
      for (;;) {
        const leftToLookMs = () => Math.max(deadline - Date.now(), shortestLookMs);
        const job = await lookAtLast(id, leftToLookMs);
        if (finished.includes(job.status)) return job as never;
        const leftMs = deadline - Date.now();
        if (leftMs <= 0) throw new SluiceTimeoutError(job, timeoutMs);
        await sleep(Math.min(intervalMs, leftMs));
      }
    },

    async resolve(id, output) {
      const body = { output: output ?? null };
      try {
        return camelCased(await send<JobResponse>("POST", `${pathOf(id)}/resolve`, { body }));
      } catch (error) {
        return unlessDone(error, id, "completed");
      }
    },

    async signal(name, key, payload) {
      const body = { key, payload: payload ?? null };
      const path = `/v1/signals/${encodeURIComponent(name)}`;
      return !(await send<SignalResponse>("POST", path, { body })).deduplicated;
    },

    async nudge(queue) {
      await send("POST", "/v1/nudge", { body: { queue } });
    },

    async cancel(id, { running = false } = {}) {
      try {
        const path = `${pathOf(id)}/cancel`;
        return camelCased(await send<JobResponse>("POST", path, running ? { body: { running } } : {}));
      } catch (error) {
        return unlessDone(error, id, "cancelled");
      }
    },
  };
}

function enqueueOne(
  send: Send,
  job: TypedJob | string,
  payload: unknown,
  options: { idempotencyKey?: string } = {},
) {
  const idempotencyKey = options.idempotencyKey ?? crypto.randomUUID();
  const body = newJob(job, payload, { ...options, idempotencyKey });
  return send<EnqueueResponse>("POST", "/v1/jobs", { body });
}

function toEnqueued({ job_id, outcome, replaced_job_id, deduplicated }: EnqueueResponse): Enqueued {
  return {
    jobId: job_id,
    outcome: outcome ?? (deduplicated ? "kept" : "created"),
    replacedJobId: replaced_job_id ?? null,
    deduplicated,
  };
}

/** How the state of a job is read. */
function createLooks(send: Send) {
  const look = async (id: string, timeoutMs?: number): Promise<Job> =>
    camelCased(await send<JobResponse>("GET", pathOf(id), { timeoutMs }));

  /** The job, or if it has completed and was continued, the last one of its chain. */
  const lookAtLast = async (id: string, leftMs: () => number): Promise<Job> => {
    const job = await look(id, leftMs());
    if (job.status !== "completed" || !job.chain) return job;
    const path = `/v1/chains/${job.chain.chain_id}`;
    const chain = await send<ChainResponse>("GET", path, { timeoutMs: leftMs() });
    const last = chain.jobs.at(-1);
    return last ? camelCased(last) : job;
  };

  /** After a 409: an earlier try may have done it, and its answer was lost. */
  const unlessDone = async (error: unknown, id: string, status: Job["status"]): Promise<Job> => {
    if (!(error instanceof SluiceRequestError) || error.status !== 409) throw error;
    const job = await look(id);
    if (job.status === status) return job;
    throw error;
  };

  return { look, lookAtLast, unlessDone };
}

function newJob(job: TypedJob | string, payload: unknown, options: object): object {
  const { after, debounce, ...rest } = options as { after?: After; debounce?: Debounce };
  const type = typeof job === "string" ? job : job.type;
  return {
    ...{ type, payload, ...snakeCased(rest) },
    ...(after && { after: toLists(after) }),
    ...(debounce && { debounce: snakeCased(debounce) }),
  };
}

function pathOf(id: string): string {
  return `/v1/jobs/${encodeURIComponent(id)}`;
}
