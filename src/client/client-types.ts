// The types of the client: its options, and what it can do.
import type { JobOptions, JobResponse } from "../contract/jobs.ts";
import type {
  EnqueueArgs,
  Enqueued,
  EnqueueManyArgs,
  MergeOption,
  PlainOption,
} from "../core/enqueue-args.ts";
import type { FlowBuilder } from "../core/flow.ts";
import type { FlowIds, ItemOf, JobId, JobOfId, OutputOf, PayloadOf, TypedJob } from "../core/typed-job.ts";
import type { CamelCased } from "./field-names.ts";
import type { Fetch } from "./send.ts";

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

export type { Enqueued };

type OwnTypes = "scheduledAt" | "expiresAt" | "idempotencyKey" | "debounce";

/** All options of a job but `traceparent`, which is a header. */
interface CallOptions extends Omit<JobOptions, OwnTypes | "traceparent"> {
  scheduledAt?: Date | string;
  expiresAt?: Date | string;
  /** The same key and the same request return the same job. Without one, only the retries of this call do. */
  idempotencyKey?: string;
}
export interface EnqueueOptions extends CallOptions, PlainOption {}
export interface MergeOptions extends CallOptions, MergeOption {}

/** A job of a flow needs no idempotency key, because the whole flow has one. */
export type FlowJobOptions = Omit<EnqueueOptions, "idempotencyKey" | "after" | "debounce" | "throttle">;

interface ManyCallOptions<Payload> extends Omit<CallOptions, "idempotencyKey"> {
  idempotencyKey?: (payload: Payload, index: number) => string;
}
export interface EnqueueManyOptions<Payload> extends ManyCallOptions<Payload>, PlainOption {}
export interface MergeManyOptions<Item> extends ManyCallOptions<Item>, MergeOption {}

export interface WaitOptions {
  /** Default 30,000. */
  timeoutMs?: number;
  /** Default 500. */
  intervalMs?: number;
}

/** A job as `GET /v1/jobs/:id` shows it. Times are ISO 8601. */
export type Job = CamelCased<JobResponse>;

/** A job, or a name. With types by name a misspelt one does not compile. */
type Name<Jobs> = TypedJob | (keyof Jobs extends never ? string : keyof Jobs & string);
type JobFor<Jobs, Job> = Job extends TypedJob ? Job : Job extends keyof Jobs ? Jobs[Job] : unknown;
type PayloadFor<Jobs, Job> = Job extends TypedJob | keyof Jobs ? PayloadOf<JobFor<Jobs, Job>> : object;
type ItemFor<Jobs, Job> = Job extends TypedJob | keyof Jobs ? ItemOf<PayloadOf<JobFor<Jobs, Job>>> : object;

type ArgsFor<Jobs, Job> = EnqueueArgs<
  JobFor<Jobs, Job>,
  CallOptions,
  PayloadFor<Jobs, Job>,
  ItemFor<Jobs, Job>
>;

type ManyArgsFor<Jobs, Job> = EnqueueManyArgs<
  JobFor<Jobs, Job>,
  ManyCallOptions<PayloadFor<Jobs, Job>>,
  ManyCallOptions<ItemFor<Jobs, Job>>,
  PayloadFor<Jobs, Job>,
  ItemFor<Jobs, Job>
>;

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
  enqueue<Job extends Name<Jobs>>(job: Job, ...args: ArgsFor<Jobs, Job>): Promise<JobId<JobFor<Jobs, Job>>>;
  /** The same, and tells what a debounce or a throttle has made of it. */
  enqueueWithOutcome<Job extends Name<Jobs>>(
    job: Job,
    ...args: ArgsFor<Jobs, Job>
  ): Promise<Enqueued<JobFor<Jobs, Job>>>;
  /** Returns the jobs' ids in the order of the payloads. Each hundred is enqueued as a whole or not at all. */
  enqueueMany<Job extends Name<Jobs>>(
    job: Job,
    ...args: ManyArgsFor<Jobs, Job>
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
