// migrate (M2): from nothing, again, by several at once, into a schema of any name.
import { randomBytes } from "node:crypto";
import pg from "pg";
import { expect, test } from "vitest";
import { migrate } from "../../src/cli/migrate.ts";
import { pause, resume } from "../../src/core/sql/index.ts";
import { createPgDatabase, useTestDatabase } from "../support/test-database.ts";
import { wholeLife } from "../support/whole-life.ts";

const db = useTestDatabase();

test("running it again applies nothing", async () => {
  const lines: string[] = [];
  await migrate({ databaseUrl: db.url, log: (line) => lines.push(line) });
  expect(lines).toEqual([]);
});

test("four runners at once apply each migration once, into a schema of another name", async () => {
  const schema = `s_${randomBytes(4).toString("hex")}`;
  const lines: string[] = [];
  await Promise.all(
    Array.from({ length: 4 }, () =>
      migrate({ databaseUrl: db.url, schema, log: (line) => lines.push(line) }),
    ),
  );
  const { rows } = await db.pool.query(`select name from ${schema}.migration order by name`);
  expect(lines).toEqual(rows.map((row) => `applied ${row.name}`));
  expect(lines.length).toBeGreaterThan(0);
});

test.each(["elsewhere", "Mixed Case"])("jobs live their whole life in the schema %o", async (schema) => {
  await migrate({ databaseUrl: db.url, schema });
  await wholeLife(createPgDatabase(db.pool, schema));
  const { rows } = await db.pool.query("select from sluice.job");
  expect(rows).toEqual([]);
});

test("a function file that changed is applied again, alone, and still not for everyone", async () => {
  await db.pool.query("drop function sluice.resume");
  await db.pool.query("update sluice.migration set checksum = 'of old' where name = 'functions/pause.sql'");
  const lines: string[] = [];
  await migrate({ databaseUrl: db.url, log: (line) => lines.push(line) });
  expect(lines).toEqual(["applied functions/pause.sql"]);
  expect(await db.run(pause({ type: "echo" }))).toEqual([true]);
  expect(await db.run(resume({ type: "echo" }))).toEqual([true]);
  const { rows } = await db.pool.query(`
    select proname from pg_proc
    where pronamespace = 'sluice'::regnamespace and has_function_privilege('public', oid, 'execute')`);
  expect(rows).toEqual([]);
});

test("a table file that is recorded is not applied again, whatever its checksum", async () => {
  await db.pool.query("update sluice.migration set checksum = 'of old' where name = '0001_tables.sql'");
  const lines: string[] = [];
  await migrate({ databaseUrl: db.url, log: (line) => lines.push(line) });
  expect(lines).toEqual([]);
});

test("a database that is not there is a clear error", async () => {
  await expect(migrate({ databaseUrl: `${db.url}_no` })).rejects.toThrow(pg.DatabaseError);
});
