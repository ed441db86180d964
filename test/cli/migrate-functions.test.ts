// How migrate handles functions and views whose file has changed. Each test adds its own files to those of this release.
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { migrate } from "../../src/cli/migrate.ts";
import { changeFiles } from "../support/migration-files.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { only } from "../support/verbs.ts";

const db = useTestDatabase();
const app = `app_${randomBytes(6).toString("hex")}`;

const double = "create or replace function double(n int) returns int language sql return n * 2;";
const other = "create or replace function other() returns int language sql return 1;";
const shown = "create or replace view shown as select double(21) as answer;";

beforeAll(() => db.pool.query(`create role ${app}`));
afterAll(async () => {
  await db.pool.query(`drop owned by ${app}`);
  await db.pool.query(`drop role ${app}`);
});

/** Migrates with these files added to those of the release. Returns the log lines. */
async function apply(texts: Record<string, string | null>): Promise<string[]> {
  const lines: string[] = [];
  await migrate({ databaseUrl: db.url, files: changeFiles(texts), log: (line) => lines.push(line) });
  return lines;
}

const scalar = async (text: string) => Object.values(only((await db.pool.query(text)).rows))[0];
const oidOf = (name: string) => scalar(`select oid from pg_proc where proname = '${name}'`);
const mayCall = (signature: string) =>
  scalar(`select has_function_privilege('${app}', 'sluice.${signature}', 'execute')`);

beforeEach(async () => {
  await apply({});
  await apply({ "functions/double.sql": `${double} ${other}`, "functions/shown.sql": shown });
  await db.pool.query(`grant execute on function sluice.double to ${app}`);
  await db.pool.query(`grant select on sluice.shown to ${app}`);
});

describe("a function", () => {
  test("is replaced in place if only its text changed", async () => {
    const oid = await oidOf("double");
    const faster = double.replace("n * 2", "n + n");
    const files = { "functions/double.sql": `${faster} ${other}`, "functions/shown.sql": shown };
    expect(await apply(files)).toEqual(["applied functions/double.sql"]);
    expect(await oidOf("double")).toBe(oid);
    expect(await mayCall("double(int)")).toBe(true);
  });

  test("is created again if its return type changed, along with the view that uses it and the grants of both", async () => {
    const text = double.replace("returns int", "returns bigint").replace("n * 2", "n * 2::bigint");
    expect(await apply({ "functions/double.sql": `${text} ${other}`, "functions/shown.sql": shown })).toEqual(
      ["applied functions/double.sql", "applied functions/shown.sql"],
    );
    expect(await scalar("select pg_typeof(sluice.double(1))::text")).toBe("bigint");
    expect(await scalar("select answer from sluice.shown")).toBe("42");
    expect(await mayCall("double(int)")).toBe(true);
    expect(await scalar(`select has_table_privilege('${app}', 'sluice.shown', 'select')`)).toBe(true);
    expect(await scalar("select has_function_privilege('public', 'sluice.double(int)', 'execute')")).toBe(
      false,
    );
  });

  test("leaves no overload behind if its arguments changed, and keeps its grants", async () => {
    const text = double.replace("n int", "n int, times int default 2").replace("n * 2", "n * times");
    const done = await apply({ "functions/double.sql": `${text} ${other}`, "functions/shown.sql": shown });
    expect(done).toContain("dropped double(integer)");
    expect(await scalar("select sluice.double(4)")).toBe(8);
    expect(await scalar("select answer from sluice.shown")).toBe(42);
    expect(await mayCall("double(int, int)")).toBe(true);
  });

  test("is dropped if its file no longer defines it", async () => {
    expect(await apply({ "functions/double.sql": double, "functions/shown.sql": shown })).toEqual([
      "applied functions/double.sql",
      "dropped other()",
    ]);
  });

  test("is kept if it moves to another file and returns another type", async () => {
    const text = other.replace("returns int", "returns bigint");
    await apply({ "functions/double.sql": double, "functions/a.sql": text, "functions/shown.sql": shown });
    expect(await scalar("select pg_typeof(sluice.other())::text")).toBe("bigint");
  });

  test("is dropped if its file was removed", async () => {
    expect((await apply({})).toSorted()).toEqual([
      "dropped double(integer)",
      "dropped other()",
      "dropped shown",
    ]);
    expect(await scalar("select to_regclass('sluice.shown')")).toBeNull();
    expect(
      await scalar("select count(*)::int from sluice.migration where name = 'functions/double.sql'"),
    ).toBe(0);
  });

  test("that the user made in the same schema is left alone", async () => {
    await db.pool.query("create or replace function sluice.mine() returns int language sql return 1");
    await apply({});
    expect(await scalar("select sluice.mine()")).toBe(1);
  });
});

test("a user's view on a function that must be dropped is an error that names the view; nothing changes", async () => {
  await db.pool.query("create view public.theirs as select sluice.double(1) as n");
  const text = double.replace("returns int", "returns bigint").replace("n * 2", "n * 2::bigint");
  const migrated = apply({ "functions/double.sql": `${text} ${other}`, "functions/shown.sql": shown });
  await expect(migrated).rejects.toThrow(
    "functions/double.sql: view public.theirs depends on double(integer), other(), which this release changes",
  );
  expect(await scalar("select n from public.theirs")).toBe(2);
  await db.pool.query("drop view public.theirs");
});

test("an error in a file names the file, and nothing changes", async () => {
  const broken = { "functions/double.sql": double.replace("n * 2", "m"), "functions/shown.sql": shown };
  await expect(apply(broken)).rejects.toThrow(
    'migration of functions failed: functions/double.sql: column "m"',
  );
  expect(await scalar("select sluice.double(1) + sluice.other()")).toBe(3);
});

test("a file that depends on the server's version is applied again after an upgrade", async () => {
  await db.pool.query(
    "update sluice.migration set checksum = regexp_replace(checksum, 'on .*', 'on 14') where name ~ 'identity'",
  );
  const files = { "functions/double.sql": `${double} ${other}`, "functions/shown.sql": shown };
  expect(await apply(files)).toEqual(["applied functions/identity.sql"]);
});

describe("a schema that is newer than the release is refused", () => {
  test("if it has an unknown numbered file", async () => {
    await apply({ "0002_more.sql": "create table more ()" });
    await expect(apply({})).rejects.toThrow(/newer than this release of Sluice \(it has 0002_more.sql\)/);
    await db.pool.query("delete from sluice.migration where name = '0002_more.sql'; drop table sluice.more");
  });

  test("if its version is higher", async () => {
    const version =
      "create or replace function sluice.schema_version() returns int language sql immutable return";
    await db.pool.query(`${version} 99`);
    await expect(apply({})).rejects.toThrow("its version is 99");
    await db.pool.query(`${version} 1`);
  });
});
