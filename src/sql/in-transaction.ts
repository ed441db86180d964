// sluice/sql: enqueue and complete jobs inside the caller's own transaction, with the types of defineJob. The same calls
// work with a drizzle transaction, a `pg` client and a `postgres` transaction. With Neon's HTTP function, each call is a
// transaction of its own.
import type { NeonQueryFunction, NeonQueryPromise } from "@neondatabase/serverless";
import type { SQL } from "drizzle-orm";
import type * as z from "zod";
import { SluiceError } from "../core/errors.ts";
import type { Json, LeaseRef, NewJob, Payload } from "../core/job.ts";
import type { JobOptions } from "../core/job-options.ts";
import type { SharedOptions } from "../core/sql/enqueue.ts";
import { completeOne, enqueueMany as enqueueManyStatement, enqueueOne } from "../core/sql/index.ts";
import { compile, type Row, type Statement, toSql } from "../core/sql/statement.ts";
import type { JobDefinition, PayloadSchema } from "../jobs/define.ts";

/** The one method of each driver that is needed. No driver is imported. */
export type Transaction =
  | { execute(query: SQL): PromiseLike<unknown> } // drizzle
  | { unsafe(text: string, values: string[]): PromiseLike<unknown> } // postgres
  | { query(text: string, values: unknown[]): PromiseLike<unknown> }; // pg, neon

interface SchemaOption {
  /** The schema of Sluice. */
  schema?: string;
}
export interface InTransactionOptions extends JobOptions, SchemaOption {}
export interface ManyOptions extends SharedOptions, SchemaOption {}

/** Enqueues a job that commits or rolls back with the transaction. Returns its id. */
export async function enqueue<Schema extends PayloadSchema>(
  transaction: Transaction,
  job: JobDefinition<Schema>,
  payload: z.input<Schema>,
  { schema, ...options }: InTransactionOptions = {},
): Promise<string> {
  const statement = enqueueOne(newJob(job, payload, options));
  return run(transaction, statement, schema);
}

/** Enqueues a job for each payload, in one statement. Returns their ids in the same order. */
export async function enqueueMany<Schema extends PayloadSchema>(
  transaction: Transaction,
  job: JobDefinition<Schema>,
  payloads: readonly z.input<Schema>[],
  { schema, ...options }: ManyOptions = {},
): Promise<string[]> {
  const checked = payloads.map((payload, index) => check(job, payload, [String(index)]));
  return run(transaction, enqueueManyStatement(job.type, checked, withDefaults(job, options)), schema);
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

/** For a batch over Neon's HTTP: `sql.transaction([sql`insert …`, enqueueQuery(sql, welcome, { userId })])`. */
export function enqueueQuery<
  ArrayMode extends boolean,
  FullResults extends boolean,
  Schema extends PayloadSchema,
>(
  neon: NeonQueryFunction<ArrayMode, FullResults>,
  job: JobDefinition<Schema>,
  payload: z.input<Schema>,
  { schema, ...options }: InTransactionOptions = {},
): NeonQueryPromise<ArrayMode, FullResults> {
  const { text, values } = compile(enqueueOne(newJob(job, payload, options)), schema);
  return neon.query(text, values) as NeonQueryPromise<ArrayMode, FullResults>;
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
  if ("execute" in transaction) return transaction.execute(toSql(statement, schema));
  const { text, values } = compile(statement, schema);
  if ("query" in transaction) return transaction.query(text, values);
  return transaction.unsafe(text, values as string[]);
}

function newJob(job: JobDefinition, payload: unknown, options: JobOptions): NewJob {
  return { type: job.type, payload: check(job, payload, []), ...withDefaults(job, options) };
}

function withDefaults<Options extends JobOptions>(job: JobDefinition, options: Options): Options {
  return { queue: job.queue, maxAttempts: job.maxAttempts, ...options };
}

/** Stores the payload unchanged. The handler's side parses it, maybe with a newer schema. */
function check(job: JobDefinition, payload: unknown, path: readonly string[]): Payload {
  const faults = job.faultsOf(payload).map((fault) => ({
    ...fault,
    path: ["payload", ...path, fault.path].filter(Boolean).join("."),
  }));
  if (faults.length === 0) return payload as Payload;
  throw new SluiceError("request_invalid", `invalid payload for the type "${job.type}"`, { faults });
}
