// sluice/client: enqueue jobs and read their state, from anywhere that has `fetch`. Every enqueue carries an idempotency
// key, so a request whose answer was lost can be sent again without creating a second job. It has no dependencies.
import type { BatchResponse, EnqueueResponse, JobOptions, JobResponse } from "../contract/jobs.ts";
import { type CamelCased, camelCased, snakeCased } from "./field-names.ts";
import { SluiceRequestError, SluiceTimeoutError } from "./request-error.ts";
import { createSend, type Fetch, sleep } from "./send.ts";
import type { PayloadOf, TypedJob } from "./typed-job.ts";

export type { Fetch, PayloadOf, TypedJob };
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

type OwnTypes = "scheduledAt" | "expiresAt" | "idempotencyKey";

/** All options of a job but `traceparent`, which is a header. */
export interface EnqueueOptions extends Omit<JobOptions, OwnTypes | "traceparent"> {
  scheduledAt?: Date | string;
  expiresAt?: Date | string;
  /** The same key and the same request return the same job. Without one, only the retries of this call do. */
  idempotencyKey?: string;
}

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
type PayloadFor<Jobs, Job> = Job extends TypedJob
  ? PayloadOf<Job>
  : Job extends keyof Jobs
    ? PayloadOf<Jobs[Job]>
    : object;

export interface Client<Jobs extends Record<string, TypedJob> = Record<never, never>> {
  /** Returns the job's id. */
  enqueue<Job extends Name<Jobs>>(
    job: Job,
    payload: PayloadFor<Jobs, Job>,
    options?: EnqueueOptions,
  ): Promise<string>;
  /** Returns the jobs' ids in the order of the payloads. Each hundred is enqueued as a whole or not at all. */
  enqueueMany<Job extends Name<Jobs>>(
    job: Job,
    payloads: readonly PayloadFor<Jobs, Job>[],
    options?: EnqueueManyOptions<PayloadFor<Jobs, Job>>,
  ): Promise<string[]>;
  get(id: string): Promise<Job>;
  /** Polls until the job is completed, dead, discarded or cancelled. */
  wait(id: string, options?: WaitOptions): Promise<Job>;
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

  const look = async (id: string, timeoutMs?: number): Promise<Job> =>
    camelCased(await send<JobResponse>("GET", pathOf(id), { timeoutMs }));

  return {
    async enqueue(job, payload, given) {
      const idempotencyKey = given?.idempotencyKey ?? crypto.randomUUID();
      const body = newJob(job, payload, { ...given, idempotencyKey });
      return (await send<EnqueueResponse>("POST", "/v1/jobs", { body })).job_id;
    },

    async enqueueMany(job, payloads, { idempotencyKey = () => crypto.randomUUID(), ...given } = {}) {
      const jobs = payloads.map((payload, index) =>
        newJob(job, payload, { ...given, idempotencyKey: idempotencyKey(payload, index) }),
      );
      const ids: string[] = [];
      for (let start = 0; start < jobs.length; start += batchSize) {
        const body = { jobs: jobs.slice(start, start + batchSize) };
        const answer = await send<BatchResponse>("POST", "/v1/jobs/batch", { body });
        ids.push(...answer.jobs.map((made) => made.job_id));
      }
      return ids;
    },

    get: (id) => look(id),

    async wait(id, { timeoutMs = 30_000, intervalMs = 500 } = {}) {
      const deadline = Date.now() + timeoutMs;
      for (;;) {
        const job = await look(id, Math.max(deadline - Date.now(), shortestLookMs));
        if (finished.includes(job.status)) return job;
        const leftMs = deadline - Date.now();
        if (leftMs <= 0) throw new SluiceTimeoutError(job, timeoutMs);
        await sleep(Math.min(intervalMs, leftMs));
      }
    },

    async cancel(id, { running = false } = {}) {
      try {
        const path = `${pathOf(id)}/cancel`;
        return camelCased(await send<JobResponse>("POST", path, running ? { body: { running } } : {}));
      } catch (error) {
        if (!(error instanceof SluiceRequestError) || error.status !== 409) throw error;
        // An earlier try may have cancelled it, and its answer was lost.
        const job = await look(id);
        if (job.status === "cancelled") return job;
        throw error;
      }
    },
  };
}

function newJob(job: TypedJob | string, payload: object, options: EnqueueOptions): object {
  return { type: typeof job === "string" ? job : job.type, payload, ...snakeCased(options) };
}

function pathOf(id: string): string {
  return `/v1/jobs/${encodeURIComponent(id)}`;
}
