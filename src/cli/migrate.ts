// Brings a database's Sluice schema up to date: numbered files under migrations/, forward only, each applied once
// and recorded. Safe to run twice and by two at once. Used by `npm run migrate`, the local stack and the tests.
import { readdirSync, readFileSync } from "node:fs";
import pg from "pg";

export interface MigrateOptions {
  databaseUrl: string;
  schema?: string;
  log?: (line: string) => void;
}

const directory = new URL("../../migrations/", import.meta.url);

export async function migrate({
  databaseUrl,
  schema = "sluice",
  log = () => {},
}: MigrateOptions): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 15_000 });
  await client.connect();
  try {
    // A second runner waits here, then finds everything recorded.
    await client.query("select pg_advisory_lock(hashtextextended($1, 0))", [`sluice.migrate.${schema}`]);
    const name = client.escapeIdentifier(schema);
    await client.query(`create schema if not exists ${name}`);
    await client.query(`set search_path to ${name}`);
    await client.query(
      "create table if not exists migration (name text primary key, applied_at timestamptz not null default now())",
    );
    for (const file of await pending(client)) {
      await apply(client, file);
      log(`applied ${file}`);
    }
  } finally {
    await client.end();
  }
}

async function pending(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>("select name from migration");
  const applied = new Set(rows.map((row) => row.name));
  return readdirSync(directory)
    .filter((file) => file.endsWith(".sql") && !applied.has(file))
    .sort();
}

/** One transaction a file: a migration that fails leaves nothing behind. */
async function apply(client: pg.Client, file: string): Promise<void> {
  await client.query("begin");
  try {
    await client.query(readFileSync(new URL(file, directory), "utf8"));
    await client.query("insert into migration (name) values ($1)", [file]);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw new Error(`migration ${file} failed: ${(error as Error).message}`, { cause: error });
  }
}
