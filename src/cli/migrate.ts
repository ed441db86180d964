// Brings a database's Sluice schema up to date. Safe to run twice and by two at once. Used by `sluice migrate`, the
// local stack and the tests.
//
// The connection may be a pooler's in transaction mode, where the next transaction of anybody runs on the same server
// connection. So nothing is set for the session: each step is one transaction with its own search_path and its own lock.
// Another run may come between two steps; each step looks again, under the lock, at what is recorded.
import type pg from "pg";
import { defaultSchema, schemaName, schemaNameFault } from "../core/schema-name.ts";
import { connect } from "./connect.ts";
import { type MigrationFile, type MigrationStep, migrationSteps } from "./migration-files.ts";
import { whileWaiting } from "./waiting.ts";

export interface MigrateOptions {
  databaseUrl: string;
  schema?: string;
  log?: (line: string) => void;
}

interface Run {
  client: pg.Client;
  schema: string;
  log: (line: string) => void;
}

const lowestVersion = 15;

export async function migrate({
  databaseUrl,
  schema = defaultSchema,
  log = () => {},
}: MigrateOptions): Promise<void> {
  if (!schemaName.test(schema)) throw new Error(`SLUICE_SCHEMA ${schemaNameFault}`);
  const client = await connect(databaseUrl, log);
  const run = { client, schema, log };
  try {
    await refuseOldServer(client);
    await inTransaction(run, "the schema", () => createSchema(run));
    for (const step of migrationSteps()) await applyStep(run, step);
    await inTransaction(run, "partitions", () => client.query("select add_partitions()"));
  } finally {
    await client.end();
  }
}

async function refuseOldServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ version: string }>(
    "select current_setting('server_version_num') as version",
  );
  const version = Math.floor(Number(rows[0]?.version) / 10_000);
  if (version < lowestVersion)
    throw new Error(`PostgreSQL ${lowestVersion} or newer is needed, this is ${version}`);
}

/** "if not exists" alone would ask for the right to create one, though it is there. */
async function createSchema({ client, schema }: Run): Promise<void> {
  const { rowCount } = await client.query("select from pg_namespace where nspname = $1", [schema]);
  if (rowCount === 0) await client.query(`create schema ${schema}`);
  await client.query(`
    create table if not exists migration (
      name       text primary key,
      checksum   text not null,
      applied_at timestamptz not null default now()
    )`);
}

/** A step that fails leaves nothing behind. */
async function applyStep(run: Run, step: MigrationStep): Promise<void> {
  const { client, log } = run;
  const applied = await inTransaction(run, step.name, async () => {
    const recorded = await recordedChecksums(client);
    const pending = step.files.filter((file) => step.isPending(file, recorded.get(file.name)));
    if (pending.length === 0) return [];
    if (step.before) await client.query(step.before);
    for (const file of pending) await applyFile(client, file);
    if (step.after) await client.query(step.after);
    return pending;
  });
  for (const file of applied) log(`applied ${file.name}`);
}

async function applyFile(client: pg.Client, { name, text, checksum }: MigrationFile): Promise<void> {
  await client.query(text).catch((error: Error) => {
    throw new Error(`${name}: ${error.message}`, { cause: error });
  });
  await client.query(
    `insert into migration (name, checksum) values ($1, $2)
     on conflict (name) do update set checksum = excluded.checksum, applied_at = now()`,
    [name, checksum],
  );
}

async function recordedChecksums(client: pg.Client): Promise<Map<string, string>> {
  const { rows } = await client.query<{ name: string; checksum: string }>(
    "select name, checksum from migration",
  );
  return new Map(rows.map((row) => [row.name, row.checksum]));
}

/**
 * Under the lock of the schema's migrations, which ends with the transaction. Read committed, whatever the role's default
 * is: what is read after the lock has to be what the run before has committed.
 */
async function inTransaction<T>(run: Run, name: string, work: () => Promise<T>): Promise<T> {
  const { client, schema } = run;
  await client.query("begin isolation level read committed read write");
  try {
    await client.query(`set local search_path to ${schema}, pg_temp`);
    await takeLock(run);
    const result = await work();
    await client.query("commit");
    return result;
  } catch (error) {
    // Where this fails too, the connection is lost and with it the transaction.
    await client.query("rollback").catch(() => {});
    throw new Error(`migration of ${name} failed: ${(error as Error).message}`, { cause: error });
  }
}

async function takeLock({ client, schema, log }: Run): Promise<void> {
  const lock = client.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [
    `sluice.migrate.${schema}`,
  ]);
  await whileWaiting(lock, (seconds) =>
    log(`waiting for another migration of the schema "${schema}", for ${seconds} s now`),
  );
}
