// Brings a database's Sluice schema up to date. Tables change by numbered files under migrations/, forward only, each
// applied once and recorded; functions and views stand in migrations/functions/, applied again whenever their text
// changes. Safe to run twice and by two at once. Used by `sluice migrate`, the local stack and the tests.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import pg from "pg";

export interface MigrateOptions {
  databaseUrl: string;
  schema?: string;
  log?: (line: string) => void;
}

const besideSource = new URL("../../migrations/", import.meta.url);
const besideBuild = new URL("../../../migrations/", import.meta.url); // from dist/lib/cli/
const tables = existsSync(besideSource) ? besideSource : besideBuild;
const functions = new URL("functions/", tables);
const lowestVersion = 15;

export async function migrate({
  databaseUrl,
  schema = "sluice",
  log = () => {},
}: MigrateOptions): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 15_000 });
  await client.connect();
  try {
    await refuseOldServer(client);
    // A second runner waits here, then finds everything recorded.
    await client.query("select pg_advisory_lock(hashtextextended($1, 0))", [`sluice.migrate.${schema}`]);
    const name = client.escapeIdentifier(schema);
    await client.query(`create schema if not exists ${name}`);
    await client.query(`set search_path to ${name}, pg_temp`);
    await client.query(`
      create table if not exists migration (
        name       text primary key,
        checksum   text not null,
        applied_at timestamptz not null default now()
      )`);
    const applied = await appliedChecksums(client);
    const newTables = sqlFiles(tables).filter((file) => !applied.has(file.name));
    const newFunctions = sqlFiles(functions).filter((file) => applied.get(file.name) !== file.checksum);
    for (const file of newTables) await apply(client, file, log);
    if (newFunctions.length > 0) await applyFunctions(client, newFunctions, log);
    await client.query("select add_partitions()");
  } finally {
    await client.end();
  }
}

interface SqlFile {
  name: string;
  text: string;
  checksum: string;
}

function sqlFiles(directory: URL): SqlFile[] {
  const prefix = directory === functions ? "functions/" : "";
  return readdirSync(directory)
    .filter((file) => file.endsWith(".sql"))
    .sort()
    .map((file) => {
      const text = readFileSync(new URL(file, directory), "utf8");
      return { name: prefix + file, text, checksum: createHash("sha256").update(text).digest("hex") };
    });
}

async function refuseOldServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ version: string }>(
    "select current_setting('server_version_num') as version",
  );
  const version = Math.floor(Number(rows[0]?.version) / 10_000);
  if (version < lowestVersion)
    throw new Error(`PostgreSQL ${lowestVersion} or newer is needed, this is ${version}`);
}

async function appliedChecksums(client: pg.Client): Promise<Map<string, string>> {
  const { rows } = await client.query<{ name: string; checksum: string }>(
    "select name, checksum from migration",
  );
  return new Map(rows.map((row) => [row.name, row.checksum]));
}

/** One transaction a file: a migration that fails leaves nothing behind. */
async function apply(client: pg.Client, file: SqlFile, log: (line: string) => void): Promise<void> {
  await inTransaction(client, file.name, async () => {
    await client.query(file.text);
    await record(client, file);
  });
  log(`applied ${file.name}`);
}

/** All in one transaction, since they call each other; and only the owner may call them unless told otherwise. */
async function applyFunctions(
  client: pg.Client,
  files: SqlFile[],
  log: (line: string) => void,
): Promise<void> {
  await inTransaction(client, "functions", async () => {
    await client.query("set local check_function_bodies = off");
    for (const file of files) {
      await client.query(file.text).catch((error: Error) => {
        throw new Error(`${file.name}: ${error.message}`, { cause: error });
      });
      await record(client, file);
    }
    await client.query(
      "do $$ begin execute format('revoke execute on all functions in schema %I from public', current_schema()); end $$",
    );
  });
  for (const file of files) log(`applied ${file.name}`);
}

async function record(client: pg.Client, { name, checksum }: SqlFile): Promise<void> {
  await client.query(
    `insert into migration (name, checksum) values ($1, $2)
     on conflict (name) do update set checksum = excluded.checksum, applied_at = now()`,
    [name, checksum],
  );
}

async function inTransaction(client: pg.Client, name: string, work: () => Promise<void>): Promise<void> {
  await client.query("begin");
  try {
    await work();
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw new Error(`migration of ${name} failed: ${(error as Error).message}`, { cause: error });
  }
}
