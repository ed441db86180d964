// Short forms of the engine's functions, for tests that call several of them.
import type { QueryResultRow } from "pg";
import type { ClaimedJob, Job, LeaseRef, NewJob, Outcome } from "../../src/core/job.ts";
import type { ChangedJob } from "../../src/core/job-row.ts";
import type { Settled } from "../../src/core/settlements.ts";
import type { Claim, Claimed } from "../../src/core/sql/claim.ts";
import type { EnqueuedJob } from "../../src/core/sql/enqueue.ts";
import { claim, enqueue, findJob, settle } from "../../src/core/sql/index.ts";
import type { Statement } from "../../src/core/sql/statement.ts";
import { newJob } from "./jobs.ts";
import type { TestDatabase } from "./test-database.ts";

export interface Verbs {
  enqueue(...jobs: Partial<NewJob>[]): Promise<EnqueuedJob[]>;
  enqueueOne(fields?: Partial<NewJob>): Promise<string>;
  claimBatch(options?: Partial<Claim>): Promise<Claimed>;
  claim(options?: Partial<Claim>): Promise<ClaimedJob[]>;
  claimOne(options?: Partial<Claim>): Promise<ClaimedJob>;
  settle(jobs: readonly LeaseRef[], outcome: Outcome): Promise<Settled[]>;
  /** Without what it waits for: test/sql/waiting-for.test.ts has that. */
  find(id: string): Promise<Job>;
  /** True if a statement about one job changed it. */
  isApplied(statement: Statement<ChangedJob | null>): Promise<boolean>;
  /** Makes a job that is dead because of a fatal error. */
  buryOne(fields?: Partial<NewJob>): Promise<string>;
  query<T extends QueryResultRow>(text: string, values?: unknown[]): Promise<T[]>;
  /** The number of rows in a table of the queue. */
  count(table: string): Promise<number>;
}

export const complete: Outcome = { kind: "complete", output: null };

export function verbsOf(db: TestDatabase): Verbs {
  // The database may be dropped before the last connection of the pool has closed.
  db.pool.on("error", () => {});
  const verbs: Verbs = {
    enqueue: async (...jobs) => await db.run(enqueue(jobs.map(newJob))),
    enqueueOne: async (fields = {}) => only(await verbs.enqueue(fields)).id,
    claimBatch: async (options = {}) =>
      await db.run(claim({ queue: "default", types: ["echo"], limit: 100, leaseSeconds: 300, ...options })),
    claim: async (options) => (await verbs.claimBatch(options)).jobs,
    claimOne: async (options) => only(await verbs.claim({ limit: 1, ...options })),
    settle: async (jobs, outcome) => await db.run(settle(jobs.map((job) => ({ job, outcome })))),
    find: async (id) => {
      const { waitingFor: _, steps: __, ...job } = found(await db.run(findJob(id)));
      return job;
    },
    isApplied: async (statement) => (await db.run(statement))?.applied ?? false,
    buryOne: async (fields = {}) => {
      const id = await verbs.enqueueOne(fields);
      const job = await verbs.claimOne({ types: [fields.type ?? "echo"], queue: fields.queue ?? "default" });
      await verbs.settle([job], { kind: "bury", message: "no use" });
      if (job.id !== id) throw new Error("another job was claimed");
      return id;
    },
    query: async <T extends QueryResultRow>(text: string, values: unknown[] = []) =>
      (await db.pool.query<T>(text, values)).rows,
    count: async (table) =>
      only(await verbs.query<{ count: number }>(`select count(*)::int as count from sluice.${table}`)).count,
  };
  return verbs;
}

export function only<T>(rows: readonly T[]): T {
  const [row] = rows;
  if (row === undefined || rows.length !== 1) throw new Error(`one row expected, not ${rows.length}`);
  return row;
}

function found<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("nothing was found");
  return value;
}

export function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

export const secondsBetween = (from: Date, to: Date) => (to.getTime() - from.getTime()) / 1000;
export const secondsFromNow = (at: Date) => secondsBetween(new Date(), at);
export const daySeconds = 86_400;
