// Brings a database's Sluice schema up to date. It is safe to run it twice, or two at once. `sluice migrate`, the local
// stack and the tests use it.
//
// The connection may go through a pooler in transaction mode, which gives the same server connection to other clients
// between two transactions. So nothing is set for the session: each step is one transaction with its own search_path and
// lock. Another run may work between two steps, so each step checks again, under the lock, what is recorded.
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { defaultSchema, schemaName, schemaNameFault } from "../core/schema-name.ts";
import { connect } from "./connect.ts";
import { type MigrationFiles, readMigrationFiles } from "./migration-files.ts";
import {
  beginSql,
  limitsSql,
  lockSql,
  type MigrationStep,
  migrationScript,
  migrationSteps,
} from "./migration-script.ts";
import { findPending, type Pending, readSchemaState } from "./migration-state.ts";
import { whileWaiting } from "./waiting.ts";

export interface MigrateOptions {
  databaseUrl: string;
  schema?: string;
  log?: (line: string) => void;
  /** Replaces the files of this release. */
  files?: MigrationFiles;
}

interface Run {
  client: pg.Client;
  schema: string;
  log: (line: string) => void;
}

const lockTries = 60;
const maxPauseMs = 500;
const lockNotAvailable = "55P03";

export async function migrate(options: MigrateOptions): Promise<void> {
  const { files = readMigrationFiles() } = options;
  await withPending({ ...options, files }, async (run, pending) => {
    const steps = migrationSteps(files, run.schema).filter(({ name }) => isNeeded(name, pending));
    for (const step of steps) await runStep(run, step);
  });
}

/** Logs what `migrate` would apply, and changes nothing. */
export async function dryRun(options: MigrateOptions): Promise<void> {
  await withPending(options, async ({ log }, { numbered, functions, removed }) => {
    for (const name of [...numbered, ...functions]) log(`would apply ${name}`);
    for (const name of removed) log(`would drop the functions and views of ${name}`);
    if (numbered.length + functions.length + removed.length === 0) log("nothing to apply");
  });
}

/** Returns a script that does what `migrate` does. It works for every database, so it needs no connection. */
export function printScript({ schema = defaultSchema }: { schema?: string }): string {
  refuseSchemaName(schema);
  return migrationScript(readMigrationFiles(), schema);
}

async function withPending(
  { databaseUrl, schema = defaultSchema, log = () => {}, files = readMigrationFiles() }: MigrateOptions,
  work: (run: Run, pending: Pending) => Promise<void>,
): Promise<void> {
  refuseSchemaName(schema);
  const client = await connect(databaseUrl, log);
  try {
    await work({ client, schema, log }, findPending(files, await readSchemaState(client, schema)));
  } finally {
    await client.end();
  }
}

function refuseSchemaName(schema: string): void {
  if (!schemaName.test(schema)) throw new Error(`SLUICE_SCHEMA ${schemaNameFault}`);
}

/** The partitions step always runs: a day's partitions may be missing even if all files are applied. */
function isNeeded(step: string, { numbered, functions, removed }: Pending): boolean {
  const hasFunctions = functions.length + removed.length > 0;
  if (step === "partitions") return true;
  if (step === "the schema") return hasFunctions || numbered.length > 0;
  return step === "functions" ? hasFunctions : numbered.includes(step);
}

/** A step that cannot get a lock is rolled back. It is retried after a pause, in which those who waited behind it go on. */
async function runStep(run: Run, step: MigrationStep): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await runOnce(run, step);
    } catch (error) {
      const { code, message } = error as pg.DatabaseError;
      if (code !== lockNotAvailable || tries === lockTries)
        throw new Error(`migration of ${step.name} failed: ${message}`, { cause: error });
      if (tries === 1) run.log(`${step.name}: another transaction holds a lock, retrying`);
      await sleep(Math.random() * maxPauseMs);
    }
  }
}

async function runOnce(run: Run, { sql }: MigrationStep): Promise<void> {
  const { client, schema, log } = run;
  try {
    await client.query(beginSql(schema));
    await takeLock(run);
    await client.query(limitsSql);
    // The driver returns one result for each of the statements.
    const results = [await client.query<{ line: string }>(sql)].flat();
    await client.query("commit");
    for (const { line } of results.at(-1)?.rows ?? []) log(line);
  } catch (error) {
    // If this fails too, the connection is lost, and Postgres rolls back by itself.
    await client.query("rollback").catch(() => {});
    throw error;
  }
}

async function takeLock({ client, schema, log }: Run): Promise<void> {
  await whileWaiting(client.query(lockSql(schema)), (seconds) =>
    log(`waiting for another migration of the schema "${schema}" (${seconds} s)`),
  );
}
