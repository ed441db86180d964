// sluice/sql: enqueue and complete jobs inside the caller's own transaction, with the types of defineJob. The same calls
// work with a transaction of drizzle, `pg`, `postgres` and Prisma, and with that of any other tool through an object with
// `query(text, values)`. With Neon's HTTP function, each call is a transaction of its own.
import type { NeonQueryFunction, NeonQueryPromise } from "@neondatabase/serverless";
import type {
  EnqueueArgs,
  Enqueued,
  EnqueueManyArgs,
  MergeOption,
  PlainOption,
} from "../core/enqueue-args.ts";
import { SluiceError } from "../core/errors.ts";
import { describeFlow, type FlowBuilder, toLists } from "../core/flow.ts";
import type { Json, LeaseRef, Payload } from "../core/job.ts";
import { type JobOptions, storedPayload } from "../core/job-options.ts";
import type { SharedOptions } from "../core/sql/enqueue.ts";
import {
  completeOne,
  enqueueFlow as enqueueFlowStatement,
  enqueueMany as enqueueManyStatement,
  enqueueOne,
  enqueueWithOutcome as enqueueWithOutcomeStatement,
  sendSignal,
} from "../core/sql/index.ts";
import { type CompiledStatement, compile, type Row, type Statement } from "../core/sql/statement.ts";
import type { FlowIds, JobId, OptionsFor, PayloadOf, TypedJob } from "../core/typed-job.ts";
import { checkPayload, type EnqueuableJob, newJob, withDefaults } from "../jobs/flow-context.ts";

export { SluiceError } from "../core/errors.ts";
export { type NudgeEnv, nudge } from "./nudge.ts";
export type { Enqueued };

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
type CallOptions = Omit<JobOptions, "debounce"> & SchemaOption;
export interface InTransactionOptions extends CallOptions, PlainOption {}
export interface MergeOptions extends CallOptions, MergeOption {}
type ManyCallOptions = Omit<SharedOptions, "debounce"> & SchemaOption;
export interface ManyOptions extends ManyCallOptions, PlainOption {}
export interface MergeManyOptions extends ManyCallOptions, MergeOption {}

/** Enqueues a job that commits or rolls back with the transaction. Returns its id. */
export async function enqueue<Job extends EnqueuableJob & TypedJob>(
  transaction: Transaction,
  job: Job,
  ...[payload, options]: EnqueueArgs<Job, CallOptions>
): Promise<JobId<Job>> {
  const { schema, ...given } = withLists(options);
  return run(transaction, enqueueOne(newJob(job, payload, given)), schema);
}

/** The same, and tells what a debounce or a throttle has made of it. */
export async function enqueueWithOutcome<Job extends EnqueuableJob & TypedJob>(
  transaction: Transaction,
  job: Job,
  ...[payload, options]: EnqueueArgs<Job, CallOptions>
): Promise<Enqueued<Job>> {
  const { schema, ...given } = withLists(options);
  const told = await run(transaction, enqueueWithOutcomeStatement(newJob(job, payload, given)), schema);
  return {
    jobId: told.id,
    outcome: told.outcome ?? (told.deduplicated ? "kept" : "created"),
    replacedJobId: told.replacedId,
    deduplicated: told.deduplicated,
  };
}

/** Enqueues a job for each payload, in one statement. Returns their ids in the same order. */
export async function enqueueMany<Job extends EnqueuableJob & TypedJob>(
  transaction: Transaction,
  job: Job,
  ...[payloads, options]: EnqueueManyArgs<Job, ManyCallOptions>
): Promise<JobId<Job>[]> {
  const { schema, ...given } = withLists(options);
  for (const [index, payload] of payloads.entries())
    checkPayload(job, storedPayload(payload, given), [String(index)]);
  const stored = payloads as readonly Payload[];
  return run(transaction, enqueueManyStatement(job.type, stored, withDefaults(job, given)), schema);
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
  const compiled = compile(enqueueOne(newJob(job, payload, given)), schema);
  return "execute" in db
    ? db.execute(forDrizzle(compiled) as never)
    : db.query(compiled.text, compiled.values);
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
  const compiled = compile(statement, schema);
  if ("execute" in transaction) return transaction.execute(forDrizzle(compiled) as never);
  const { text, values } = compiled;
  if ("$queryRawUnsafe" in transaction) return transaction.$queryRawUnsafe(text, ...values);
  if ("query" in transaction) return transaction.query(text, values);
  return transaction.unsafe(text, values as string[]);
}

/** What drizzle executes: it asks for an SQL object, and asks that for its text and parameters. test/dependents has its versions. */
function forDrizzle({ text, values }: CompiledStatement): object {
  const query = { toQuery: () => ({ sql: text, params: values }), getSQL: () => query };
  return query;
}

/** A slot for one job gets a list of one. */
function withLists(options: object = {}): JobOptions & SchemaOption {
  const given = options as JobOptions & SchemaOption;
  return given.after ? { ...given, after: toLists(given.after) } : given;
}
