// migrate through a pooler in transaction mode, as with Neon's and Supabase's pooled connection strings. It must leave
// no session state in the connections that it shares with the app.
import { afterAll, beforeAll, expect, test } from "vitest";
import { migrate } from "../../src/cli/migrate.ts";
import { connectTo, startAppBeside } from "../support/app-beside.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { startTransactionPooler, type TransactionPooler } from "../support/transaction-pooler.ts";

const db = useTestDatabase();
const serverConnections = 3;
let pooler: TransactionPooler;

beforeAll(async () => {
  await db.pool.query("create table account (id int)");
  pooler = await startTransactionPooler(db.url, serverConnections);
});
afterAll(() => pooler.close());

test("an app on the same pooler can read its table all the time, and the next migrate succeeds", async () => {
  const app = startAppBeside(pooler.url);
  await migrate({ databaseUrl: pooler.url, schema: "pooled" });
  await migrate({ databaseUrl: pooler.url, schema: "pooled" });
  const { reads, errors } = await app.stop();
  expect(errors).toEqual([]);
  expect(reads).toBeGreaterThan(0);
});

test("migrate leaves no setting in any connection of the pooler", async () => {
  await migrate({ databaseUrl: pooler.url, schema: "pooled" });
  const clients = await Promise.all(Array.from({ length: serverConnections }, () => connectTo(pooler.url)));
  // The transactions are open at the same time, so each has its own server connection.
  for (const client of clients) await client.query("begin");
  for (const client of clients) {
    const { rows } = await client.query(`
      select current_setting('search_path') as path, current_setting('check_function_bodies') as bodies`);
    expect(rows).toEqual([{ path: '"$user", public', bodies: "on" }]);
  }
  for (const client of clients) await client.end();
  const { rows } = await db.pool.query(`
    select objid from pg_locks
    where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`);
  expect(rows).toEqual([]);
});
