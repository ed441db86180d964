// migrate on an empty database, a second time, by several processes at once, and into a schema of another name.
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { migrate } from "../../src/cli/migrate.ts";
import { pause, resume } from "../../src/core/sql/index.ts";
import { changeFiles } from "../support/migration-files.ts";
import { inSession } from "../support/sessions.ts";
import { createPgDatabase, useTestDatabase } from "../support/test-database.ts";
import { wholeLife } from "../support/whole-life.ts";

const db = useTestDatabase();

test("a second migrate applies nothing", async () => {
  const lines: string[] = [];
  await migrate({ databaseUrl: db.url, log: (line) => lines.push(line) });
  expect(lines).toEqual([]);
});

test("four migrates at once apply each file once, into a schema of another name", async () => {
  const schema = `s_${randomBytes(4).toString("hex")}`;
  const lines: string[] = [];
  await Promise.all(
    Array.from({ length: 4 }, () =>
      migrate({ databaseUrl: db.url, schema, log: (line) => lines.push(line) }),
    ),
  );
  const { rows } = await db.pool.query(`select name from ${schema}.migration`);
  expect(rows.length).toBeGreaterThan(0);
  const applied = lines.filter((line) => line.startsWith("applied"));
  expect(applied.toSorted()).toEqual(rows.map((row) => `applied ${row.name}`).toSorted());
});

test("two migrates at once work for a role whose transactions are serializable and read-only by default", async () => {
  const url = `${db.url}?options=-c%20default_transaction_isolation%3Dserializable%20-c%20default_transaction_read_only%3Don`;
  const run = () => migrate({ databaseUrl: url, schema: "strict" });
  await Promise.all([run(), run()]);
  await wholeLife(createPgDatabase(db.pool, "strict"));
});

test("a migrate that waits for another says so, and goes on when the other has ended", async () => {
  const lines: string[] = [];
  await inSession(db.pool, async (client) => {
    await client.query("begin");
    await client.query("select pg_advisory_xact_lock(hashtextextended('sluice.migrate.sluice', 0))");
    const said = Promise.withResolvers<void>();
    const log = (line: string) => {
      lines.push(line);
      said.resolve();
    };
    const migrated = migrate({ databaseUrl: db.url, log });
    await said.promise;
    await client.query("commit");
    await migrated;
  });
  expect(lines[0]).toBe('waiting for another migration of the schema "sluice" (1 s)');
});

test("a migrate that cannot lock a table lets others use it, says so, and goes on when the lock is free", async () => {
  const schema = "locked";
  await migrate({ databaseUrl: db.url, schema });
  const files = changeFiles({ "0002_note.sql": "alter table job add column note text;" });
  const lines: string[] = [];
  await inSession(db.pool, async (reader) => {
    await reader.query(`begin; select from ${schema}.job limit 1`);
    const retries = Promise.withResolvers<void>();
    const log = (line: string) => {
      lines.push(line);
      retries.resolve();
    };
    const migrated = migrate({ databaseUrl: db.url, schema, files, log });
    await Promise.race([retries.promise, migrated]);
    // Behind a waiting migrate this would wait as long as the reader stays.
    await db.pool.query(
      `set statement_timeout = '1s'; select ${schema}.enqueue('echo'); reset statement_timeout`,
    );
    await reader.query("commit");
    await migrated;
  });
  expect(lines).toEqual([
    "0002_note.sql: another transaction holds a lock, retrying",
    "applied 0002_note.sql",
  ]);
});

test("every operation on jobs works in a schema of another name", async () => {
  const schema = "elsewhere";
  await migrate({ databaseUrl: db.url, schema });
  await wholeLife(createPgDatabase(db.pool, schema));
  const { rows } = await db.pool.query("select from sluice.job");
  expect(rows).toEqual([]);
});

test("only the changed function file is applied again, and public still may not call its functions", async () => {
  await db.pool.query("drop function sluice.resume");
  await db.pool.query("update sluice.migration set checksum = 'of old' where name = 'functions/pause.sql'");
  const lines: string[] = [];
  await migrate({ databaseUrl: db.url, log: (line) => lines.push(line) });
  expect(lines).toEqual(["applied functions/pause.sql"]);
  expect(await db.run(pause("ann", { type: "echo" }))).toBe(true);
  expect(await db.run(resume("ann", { type: "echo" }))).toBe(true);
  const { rows } = await db.pool.query(`
    select proname from pg_proc
    where pronamespace = 'sluice'::regnamespace and has_function_privilege('public', oid, 'execute')`);
  expect(rows).toEqual([]);
});

test("a changed numbered file is an error that names the file and says what to do", async () => {
  await db.pool.query("update sluice.migration set checksum = 'other' where name = '0001_tables.sql'");
  await expect(migrate({ databaseUrl: db.url })).rejects.toThrow(
    /^0001_tables.sql has changed since it was applied.* write the change as a new file with the next number/,
  );
});

test("a pooled connection string gives a warning", async () => {
  const lines: string[] = [];
  const databaseUrl = "postgresql://u:p@ep-pooler.no-such-host.invalid:6543/d";
  await expect(migrate({ databaseUrl, log: (line) => lines.push(line) })).rejects.toThrow("is unknown");
  expect(lines).toEqual([
    "warning: DATABASE_URL is a pooled connection string; use the direct one for migrations",
  ]);
});
