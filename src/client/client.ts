// sluice/client: enqueue jobs and read their state, from anywhere that has `fetch`. Every enqueue carries an idempotency
// key, so a request whose answer was lost can be sent again without creating a second job. It has no dependencies.
import type { ChainResponse, FlowMadeResponse, SignalResponse } from "../contract/flows.ts";
import type {
  BatchResponse,
  Debounce,
  EnqueueOutcome,
  EnqueueResponse,
  JobOptions,
  JobResponse,
  MergeDebounce,
  PlainDebounce,
} from "../contract/jobs.ts";
import { type After, describeFlow, type FlowBuilder, toLists } from "../core/flow.ts";
import type {
  FlowIds,
  ItemOf,
  JobId,
  JobOfId,
  OptionsFor,
  OutputOf,
  PayloadOf,
  TypedJob,
} from "../core/typed-job.ts";
import { type CamelCased, camelCased, snakeCased } from "./field-names.ts";
import { SluiceRequestError, SluiceTimeoutError } from "./request-error.ts";
import { createSend, type Fetch, type Send, sleep } from "./send.ts";

export type {
  EnqueueOutcome,
  Fetch,
  FlowBuilder,
  FlowIds,
  JobId,
  MergeDebounce,
  OutputOf,
  PayloadOf,
  PlainDebounce,
  TypedJob,
};
export { SluiceRequestError, SluiceTimeoutError };

export interface ClientOptions<Jobs extends Record<string, TypedJob> = Record<never, never>> {
  /** The Worker's URL: `https://sluice.example.com`. */
  url: string;
  /** A key with the role producer. */
  key: string;
  /** Another `fetch`, such as a service binding's: `(url, init) => env.SLUICE.fetch(url, init)`. */
  fetch?: Fetch;
  /** How long one request may take, with all retries. Default 10,000. */
  timeoutMs?: number;
  /** How long one try may take. Default: half of `timeoutMs`, so that there is time for a second one. */
  tryTimeoutMs?: number;
  /** Job types by name. Only their payloads' types are used, so `createClient<typeof jobs>(…)` does the same. */
  jobs?: Jobs;
}

type OwnTypes = "scheduledAt" | "expiresAt" | "idempotencyKey" | "debounce";

/** All options of a job but `traceparent`, which is a header. */
export interface EnqueueOptions extends Omit<JobOptions, OwnTypes | "traceparent"> {
  scheduledAt?: Date | string;
  expiresAt?: Date | string;
  /** The same key and the same request return the same job. Without one, only the retries of this call do. */
  idempotencyKey?: string;
  debounce?: PlainDebounce;
}

/** With these options the payload is one item of the type's payload, `{ items: [ … ] }`. */
export interface MergeOptions extends Omit<EnqueueOptions, "debounce"> {
  debounce: MergeDebounce;
}

/** What has become of an enqueue. */
export interface Enqueued<Job = unknown> {
  jobId: JobId<Job>;
  /** created and replaced: a new job. kept, merged and throttled: `jobId` is the job that was there. */
  outcome: EnqueueOutcome;
  /** The job that was replaced. It is cancelled. */
  replacedJobId: string | null;
  /** The idempotency key was used before: then the outcome is "kept". */
  deduplicated: boolean;
}

/** A job of a flow needs no idempotency key, because the whole flow has one. */
export type FlowJobOptions = Omit<EnqueueOptions, "idempotencyKey" | "after" | "debounce" | "throttle">;

export interface EnqueueManyOptions<Payload> extends Omit<EnqueueOptions, "idempotencyKey"> {
  idempotencyKey?: (payload: Payload, index: number) => string;
}

export interface WaitOptions {
  /** Default 30,000. */
  timeoutMs?: number;
  /** Default 500. */
  intervalMs?: number;
}

/** A job as `GET /v1/jobs/:id` shows it. Times are ISO 8601. */
export type Job = CamelCased<JobResponse>;

type Name<Jobs> = TypedJob | (keyof Jobs & string) | (string & {});
type JobFor<Jobs, Job> = Job extends TypedJob ? Job : Job extends keyof Jobs ? Jobs[Job] : unknown;
type PayloadFor<Jobs, Job> = Job extends TypedJob | keyof Jobs ? PayloadOf<JobFor<Jobs, Job>> : object;
type ItemFor<Jobs, Job> = Job extends TypedJob | keyof Jobs ? ItemOf<PayloadOf<JobFor<Jobs, Job>>> : object;

/** A job that has ended. Its output is null if it did not complete. */
export type EndedJob<Of = unknown> = Omit<Job, "output"> & { output: OutputOf<Of> | null };

/** A flow that was enqueued. */
export interface EnqueuedFlow<Refs> {
  flowId: string;
  /** The ids of the refs that the description has returned, in the same shape. */
  jobs: FlowIds<Refs>;
}

export interface Client<Jobs extends Record<string, TypedJob> = Record<never, never>> {
  /** Returns the job's id. */
  enqueue<Job extends Name<Jobs>>(
    job: Job,
    payload: PayloadFor<Jobs, Job>,
    ...options: OptionsFor<JobFor<Jobs, Job>, EnqueueOptions>
  ): Promise<JobId<JobFor<Jobs, Job>>>;
  enqueue<Job extends Name<Jobs>>(
    job: Job,
    item: ItemFor<Jobs, Job>,
    options: MergeOptions,
  ): Promise<JobId<JobFor<Jobs, Job>>>;
  /** The same, and tells what a debounce or a throttle has made of it. */
  enqueueWithOutcome<Job extends Name<Jobs>>(
    job: Job,
    payload: PayloadFor<Jobs, Job>,
    ...options: OptionsFor<JobFor<Jobs, Job>, EnqueueOptions>
  ): Promise<Enqueued<JobFor<Jobs, Job>>>;
  enqueueWithOutcome<Job extends Name<Jobs>>(
    job: Job,
    item: ItemFor<Jobs, Job>,
    options: MergeOptions,
  ): Promise<Enqueued<JobFor<Jobs, Job>>>;
  /** Returns the jobs' ids in the order of the payloads. Each hundred is enqueued as a whole or not at all. */
  enqueueMany<Job extends Name<Jobs>>(
    job: Job,
    payloads: readonly PayloadFor<Jobs, Job>[],
    ...options: OptionsFor<JobFor<Jobs, Job>, EnqueueManyOptions<PayloadFor<Jobs, Job>>>
  ): Promise<JobId<JobFor<Jobs, Job>>[]>;
  /** Enqueues up to 1,000 jobs that wait for each other, all or none. */
  enqueueFlow<Refs>(
    describe: (flow: FlowBuilder<FlowJobOptions>) => Refs,
    options?: { idempotencyKey?: string },
  ): Promise<EnqueuedFlow<Refs>>;
  get(id: string): Promise<Job>;
  /**
   * Polls until the job is completed, dead, discarded or cancelled. If the job continues with another, it waits for the end
   * of the chain and returns the last job.
   */
  wait<Id extends string>(id: Id, options?: WaitOptions): Promise<EndedJob<JobOfId<Id>>>;
  /** Completes a pending or blocked job from outside, without a worker. Returns it also if it has completed before. */
  resolve<Id extends string>(id: Id, output?: OutputOf<JobOfId<Id>>): Promise<Job>;
  /** Sends a signal. Answers whether it was the first one of its name and key: only that one counts. */
  signal(name: string, key: string, payload?: object): Promise<boolean>;
  /** Says that jobs were enqueued by SQL, so that they start at once: in one queue, or in all. Call it after the commit. */
  nudge(queue?: string): Promise<void>;
  /**
   * Returns the cancelled job. If it is no longer pending, throws a SluiceRequestError with status 409. With `running`, a
   * job that is being processed is asked to stop: `wait` for its end, which is "cancelled" unless it completes first.
   */
  cancel(id: string, options?: { running?: boolean }): Promise<Job>;
}

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
    async enqueue(job: TypedJob | string, payload: unknown, options?: object) {
      return (await enqueueOne(send, job, payload, options)).job_id as never;
    },

    async enqueueWithOutcome(job: TypedJob | string, payload: unknown, options?: object) {
      return toEnqueued(await enqueueOne(send, job, payload, options)) as never;
    },

    async enqueueMany(job, payloads, ...[options = {}]) {
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

function enqueueOne(send: Send, job: TypedJob | string, payload: unknown, options: EnqueueOptions = {}) {
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
