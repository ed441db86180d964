// sluice/sql: enqueue and complete jobs inside the caller's own transaction, with the types of defineJob. The same calls
// work with a transaction of drizzle, `pg`, `postgres` and Prisma, and with that of any other tool through an object with
// `query(text, values)`. With Neon's HTTP function, each call is a transaction of its own.
import type { NeonQueryFunction, NeonQueryPromise } from "@neondatabase/serverless";
import { SluiceError } from "../core/errors.ts";
import { describeFlow, type FlowBuilder, toLists } from "../core/flow.ts";
import type { Json, LeaseRef } from "../core/job.ts";
import type { EnqueueOutcome, JobOptions, MergeDebounce, PlainDebounce } from "../core/job-options.ts";
import type { SharedOptions } from "../core/sql/enqueue.ts";
import {
  completeOne,
  enqueueFlow as enqueueFlowStatement,
  enqueueMany as enqueueManyStatement,
  enqueueOne,
  enqueueWithOutcome as enqueueWithOutcomeStatement,
  sendSignal,
} from "../core/sql/index.ts";
import { compile, type Row, type Statement, toSql } from "../core/sql/statement.ts";
import type { FlowIds, ItemOf, JobId, OptionsFor, PayloadOf } from "../core/typed-job.ts";
import { checkPayload, type EnqueuableJob, newJob, withDefaults } from "../jobs/flow-context.ts";

export { SluiceError } from "../core/errors.ts";
export { type NudgeEnv, nudge } from "./nudge.ts";

/** The one method of each driver that is needed. No driver is imported. */
export type Transaction =
  | { execute(query: never): PromiseLike<unknown> } // drizzle: its types differ from version to version
  | { unsafe(text: string, values: string[]): PromiseLike<unknown> } // postgres
  | { $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown> } // Prisma
  | { query(text: string, values: unknown[]): PromiseLike<unknown> }; // pg, neon

interface SchemaOption {
  /** The schema of Sluice. */
  schema?: string;
}
export interface InTransactionOptions extends Omit<JobOptions, "debounce">, SchemaOption {
  debounce?: PlainDebounce | null | undefined;
}
/** With these options the payload is one item of the type's payload, `{ items: [ … ] }`. */
export interface MergeOptions extends Omit<JobOptions, "debounce">, SchemaOption {
  debounce: MergeDebounce;
}
export interface ManyOptions extends Omit<SharedOptions, "debounce">, SchemaOption {
  debounce?: PlainDebounce | null | undefined;
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

/** Enqueues a job that commits or rolls back with the transaction. Returns its id. */
export function enqueue<Job extends EnqueuableJob>(
  transaction: Transaction,
  job: Job,
  payload: PayloadOf<Job>,
  ...options: OptionsFor<Job, InTransactionOptions>
): Promise<JobId<Job>>;
export function enqueue<Job extends EnqueuableJob>(
  transaction: Transaction,
  job: Job,
  item: ItemOf<PayloadOf<Job>>,
  options: MergeOptions,
): Promise<JobId<Job>>;
export async function enqueue(
  transaction: Transaction,
  job: EnqueuableJob,
  payload: unknown,
  options?: object,
): Promise<never> {
  const { schema, ...given } = withLists(options);
  return run(transaction, enqueueOne(newJob(job, payload, given)), schema) as never;
}

/** The same, and tells what a debounce or a throttle has made of it. */
export function enqueueWithOutcome<Job extends EnqueuableJob>(
  transaction: Transaction,
  job: Job,
  payload: PayloadOf<Job>,
  ...options: OptionsFor<Job, InTransactionOptions>
): Promise<Enqueued<Job>>;
export function enqueueWithOutcome<Job extends EnqueuableJob>(
  transaction: Transaction,
  job: Job,
  item: ItemOf<PayloadOf<Job>>,
  options: MergeOptions,
): Promise<Enqueued<Job>>;
export async function enqueueWithOutcome(
  transaction: Transaction,
  job: EnqueuableJob,
  payload: unknown,
  options?: object,
): Promise<never> {
  const { schema, ...given } = withLists(options);
  const told = await run(transaction, enqueueWithOutcomeStatement(newJob(job, payload, given)), schema);
  return {
    jobId: told.id,
    outcome: told.outcome ?? (told.deduplicated ? "kept" : "created"),
    replacedJobId: told.replacedId,
    deduplicated: told.deduplicated,
  } as never;
}

/** Enqueues a job for each payload, in one statement. Returns their ids in the same order. */
export async function enqueueMany<Job extends EnqueuableJob>(
  transaction: Transaction,
  job: Job,
  payloads: readonly PayloadOf<Job>[],
  ...[options]: OptionsFor<Job, ManyOptions>
): Promise<JobId<Job>[]> {
  const { schema, ...given } = withLists(options);
  const checked = payloads.map((payload, index) => checkPayload(job, payload, [String(index)]));
  return run(transaction, enqueueManyStatement(job.type, checked, withDefaults(job, given)), schema) as never;
}

/** A job of a flow has no `after` among its options: it is given by its slots. */
export type FlowJobOptions = Omit<JobOptions, "after" | "debounce" | "throttle">;

/** Enqueues up to 1,000 jobs that wait for each other, in one statement. */
export async function enqueueFlow<Refs>(
  transaction: Transaction,
  describe: (flow: FlowBuilder<FlowJobOptions>) => Refs,
  { schema }: SchemaOption = {},
): Promise<{ flowId: string; jobs: FlowIds<Refs> }> {
  const { jobs, toIds } = describeFlow(describe);
  const flowJobs = jobs.map(({ ref, job, payload, options, after }) => ({
    ref,
    job: newJob(job as EnqueuableJob, payload, options),
    after,
  }));
  const made = await run(transaction, enqueueFlowStatement(flowJobs), schema);
  return { flowId: made.flowId, jobs: toIds(made.jobs.map(({ id }) => id)) };
}

/** Sends a signal that commits or rolls back with the transaction. Answers whether it was the first of its name and key. */
export async function signal(
  transaction: Transaction,
  name: string,
  key: string,
  payload: Json = null,
  { schema }: SchemaOption = {},
): Promise<boolean> {
  return run(transaction, sendSignal({ name, key, payload }), schema);
}

/**
 * Completes the handler's job in the same transaction as the handler's own writes. Call it last. It throws if the lease is
 * lost, so that the transaction is rolled back: another worker may have the job by now.
 */
export async function complete(
  transaction: Transaction,
  job: { jobId: string; leaseKey: string },
  output: Json = null,
  { schema }: SchemaOption = {},
): Promise<void> {
  const lease: LeaseRef = { id: job.jobId, leaseKey: job.leaseKey };
  const applied = await run(transaction, completeOne(lease, output), schema);
  if (!applied) throw new SluiceError("lease_lost", `the lease of job ${job.jobId} is lost`);
}

/**
 * For a batch over Neon's HTTP: `sql.transaction([sql`insert …`, enqueueQuery(sql, welcome, { userId })])`, or with drizzle
 * `db.batch([db.insert(users).values(user), enqueueQuery(db, welcome, { userId })])`.
 */
export function enqueueQuery<
  ArrayMode extends boolean,
  FullResults extends boolean,
  Job extends EnqueuableJob,
>(
  neon: NeonQueryFunction<ArrayMode, FullResults>,
  job: Job,
  payload: PayloadOf<Job>,
  ...options: OptionsFor<Job, InTransactionOptions>
): NeonQueryPromise<ArrayMode, FullResults>;
export function enqueueQuery<Query, Job extends EnqueuableJob>(
  db: { execute(query: never): Query },
  job: Job,
  payload: PayloadOf<Job>,
  ...options: OptionsFor<Job, InTransactionOptions>
): Query;
export function enqueueQuery(
  db: { execute(query: never): unknown } | { query(text: string, values: unknown[]): unknown },
  job: EnqueuableJob,
  payload: unknown,
  options?: object,
): unknown {
  const { schema, ...given } = withLists(options);
  const statement = enqueueOne(newJob(job, payload, given));
  if ("execute" in db) return db.execute(toSql(statement, schema) as never);
  const { text, values } = compile(statement, schema);
  return db.query(text, values);
}

async function run<T>(transaction: Transaction, statement: Statement<T>, schema?: string): Promise<T> {
  const result = await send(transaction, statement, schema);
  const rows = Array.isArray(result) ? (result as Row[]) : (result as { rows: Row[] }).rows;
  return statement.decode(rows);
}

function send(
  transaction: Transaction,
  statement: Statement<unknown>,
  schema?: string,
): PromiseLike<unknown> {
  if ("execute" in transaction) return transaction.execute(toSql(statement, schema) as never);
  const { text, values } = compile(statement, schema);
  if ("$queryRawUnsafe" in transaction) return transaction.$queryRawUnsafe(text, ...values);
  if ("query" in transaction) return transaction.query(text, values);
  return transaction.unsafe(text, values as string[]);
}

/** A slot for one job gets a list of one. */
function withLists(options: object = {}): InTransactionOptions {
  const given = options as InTransactionOptions;
  return given.after ? { ...given, after: toLists(given.after) } : given;
}
