// Writes a database with Sluice in it as plain SQL text: the script of `sluice migrate --print`, the partitions of that day,
// every row and the positions of the sequences. pg_dump would do the same, but the npm package of Postgres does not have it.
import type pg from "pg";
import { printScript } from "../../src/cli/migrate.ts";
import { compile, type Statement } from "../../src/core/sql/statement.ts";
import { examples } from "../support/statement-examples.ts";
import type { TestDatabase } from "../support/test-database.ts";
import { fillQueue } from "./fill-queue.ts";

interface Table {
  name: string;
  columns: string[];
}

/** Fills a database and dumps it, with the text of every statement that this release's Worker sends. */
export async function makeDump(db: TestDatabase): Promise<string> {
  await fillQueue(db);
  const statements = Object.values<Statement<unknown>[]>(examples).flat();
  const texts = new Set(statements.map((statement) => compile(statement, "sluice").text));
  const lines = [...texts].map((text) => `${statementPrefix}${JSON.stringify(text)}`);
  return [...lines, await dumpDatabase(db.pool)].join("\n");
}

const statementPrefix = "-- statement: ";

export function statementsIn(dump: string): string[] {
  const lines = dump.split("\n").filter((line) => line.startsWith(statementPrefix));
  return lines.map((line) => JSON.parse(line.slice(statementPrefix.length)));
}

async function dumpDatabase(pool: pg.Pool): Promise<string> {
  const client = await pool.connect();
  try {
    await client.query("begin isolation level repeatable read; set local timezone = 'UTC'");
    const rows = [];
    for (const table of await listTables(client)) rows.push(...(await dumpRows(client, table)));
    return [
      printScript({}).replace(/^\\.*\n/gm, ""), // without the commands of psql
      ...(await dumpPartitions(client)),
      // The rows come without their triggers, as with pg_dump, which creates triggers after it has filled the tables.
      "set session_replication_role = replica;",
      ...rows,
      "reset session_replication_role;",
      ...(await dumpSequences(client)),
      "",
    ].join("\n");
  } finally {
    await client.query("rollback");
    client.release();
  }
}

/** The rows of partitions are dumped with their parent. The script itself writes `migration`. */
async function listTables(client: pg.PoolClient): Promise<Table[]> {
  const { rows } = await client.query<Table>(`
    select relname as name, array_agg(quote_ident(attname) order by attnum) as columns
    from pg_class join pg_attribute on attrelid = pg_class.oid and attnum > 0 and not attisdropped
    where relnamespace = 'sluice'::regnamespace and relkind in ('r', 'p') and not relispartition and relname <> 'migration'
    group by relname order by relname`);
  return rows;
}

async function dumpRows(client: pg.PoolClient, { name, columns }: Table): Promise<string[]> {
  const values = columns.map((column) => `quote_nullable(${column}::text)`).join(", ");
  const { rows } = await client.query<{ row: string }>(
    `select '(' || concat_ws(', ', ${values}) || ')' as row from sluice.${name}`,
  );
  const into = `insert into sluice.${name} (${columns.join(", ")}) overriding system value values`;
  return rows.length > 0 ? [`${into}\n${rows.map(({ row }) => row).join(",\n")};`] : [];
}

async function dumpPartitions(client: pg.PoolClient): Promise<string[]> {
  const { rows } = await client.query<{ text: string }>(`
    select format('create table if not exists sluice.%I partition of %s %s;', relname, inhparent::regclass,
                  pg_get_expr(relpartbound, pg_class.oid)) as text
    from pg_inherits join pg_class on pg_class.oid = inhrelid
    where relnamespace = 'sluice'::regnamespace and relkind = 'r' and relname !~ 'default' order by relname`);
  return rows.map(({ text }) => text);
}

async function dumpSequences(client: pg.PoolClient): Promise<string[]> {
  const { rows } = await client.query<{ text: string }>(`
    select format('select setval(%L, %s);', 'sluice.' || sequencename, last_value) as text
    from pg_sequences where schemaname = 'sluice' and last_value is not null order by sequencename`);
  return rows.map(({ text }) => text);
}
