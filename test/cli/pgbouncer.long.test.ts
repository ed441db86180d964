// migrate through a real PgBouncer in transaction mode (Debian's package `pgbouncer`).
import { afterAll, beforeAll, expect, test } from "vitest";
import { migrate } from "../../src/cli/migrate.ts";
import { startAppBeside } from "../support/app-beside.ts";
import { type PgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
let pgbouncer: PgBouncer;

beforeAll(async () => {
  await db.pool.query("create table account (id int)");
  pgbouncer = await startPgBouncer(db.url);
});
afterAll(() => pgbouncer?.stop());

test("an app on the same pooler can read its table all the time, and the next migrate succeeds", async () => {
  const { url } = pgbouncer;
  const app = startAppBeside(url);
  for (const schema of ["one", "two", "one"]) await migrate({ databaseUrl: url, schema });
  await Promise.all([1, 2, 3].map(() => migrate({ databaseUrl: url, schema: "three" })));
  const { reads, errors } = await app.stop();
  expect(errors).toEqual([]);
  expect(reads).toBeGreaterThan(0);
});
