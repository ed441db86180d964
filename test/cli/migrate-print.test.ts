// `sluice migrate --print` and `--dry-run`, called on the command line.
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { migrate } from "../../src/cli/migrate.ts";
import { readMigrationFiles } from "../../src/cli/migration-files.ts";
import { createPgDatabase } from "../support/test-database.ts";
import { wholeLife } from "../support/whole-life.ts";

const database = `print_${randomBytes(6).toString("hex")}`;
const databaseUrl = inject("adminDatabaseUrl").replace(/[^/]+$/, database);
const admin = new pg.Client({ connectionString: inject("adminDatabaseUrl") });
const pool = new pg.Pool({ connectionString: databaseUrl });
pool.on("error", () => {}); // the database is dropped before all connections are closed

beforeAll(async () => {
  await admin.connect();
  await admin.query(`create database ${database}`);
});
afterAll(async () => {
  await pool.end();
  await admin.query(`drop database ${database} with (force)`);
  await admin.end();
});

interface Ended {
  code: number;
  out: string;
  err: string;
}

function run(args: string[], env: Record<string, string> = {}): Promise<Ended> {
  const main = new URL("../../src/cli/main.ts", import.meta.url).pathname;
  const { PATH = "" } = process.env;
  return new Promise((resolve) => {
    const options = { env: { PATH, ...env }, maxBuffer: 16 * 1024 * 1024 };
    const child = execFile(process.execPath, [main, ...args], options, (_, out, err) =>
      resolve({ code: child.exitCode ?? -1, out, err }),
    );
  });
}

const isPsqlCommand = (line: string) => line.startsWith("\\");
const runScript = (script: string) =>
  pool.query(
    script
      .split("\n")
      .filter((line) => !isPsqlCommand(line))
      .join("\n"),
  );

describe("on an empty database", () => {
  test("--dry-run names every file and creates nothing", async () => {
    const { numbered, functions } = readMigrationFiles();
    const lines = [...numbered, ...functions].map(({ name }) => `would apply ${name}`);
    const ended = await run(["migrate", "--dry-run"], { DATABASE_URL: databaseUrl });
    expect(ended).toEqual({ code: 0, err: "", out: `${lines.join("\n")}\n` });
    expect((await pool.query("select to_regnamespace('sluice') as schema")).rows).toEqual([{ schema: null }]);
  });

  test("--print gives a script that makes the schema and records its files; run again it changes nothing", async () => {
    const { code, out } = await run(["migrate", "--print"], { SLUICE_SCHEMA: "printed" });
    expect(code).toBe(0);
    await runScript(out);
    await wholeLife(createPgDatabase(pool, "printed"));
    const state = () => pool.query("select xmin, * from printed.migration order by name");
    const { rows } = await state();
    await runScript(out);
    expect((await state()).rows).toEqual(rows);
    const lines: string[] = [];
    await migrate({ databaseUrl, schema: "printed", log: (line) => lines.push(line) });
    expect(lines).toEqual([]);
  });
});

test("--dry-run says when there is nothing to apply", async () => {
  const env = { DATABASE_URL: databaseUrl, SLUICE_SCHEMA: "printed" };
  expect(await run(["migrate", "--dry-run"], env)).toEqual({ code: 0, err: "", out: "nothing to apply\n" });
});

test("a printed script refuses a numbered file that has changed", async () => {
  await pool.query("update printed.migration set checksum = 'other' where name = '0001_tables.sql'");
  const { out } = await run(["migrate", "--print"], { SLUICE_SCHEMA: "printed" });
  await expect(runScript(out)).rejects.toThrow("0001_tables.sql has changed since it was applied");
});

test.each([
  [["migrate", "--verbose"], "unknown flag --verbose"],
  [["migrate", "now"], '"now" is one argument too many'],
  [["migrate", "--print", "--dry-run"], "use either --print or --dry-run, not both"],
])("%j ends with code 2 and says why", async (args, words) => {
  const { code, err } = await run(args);
  expect(code).toBe(2);
  expect(err).toContain(words);
});

test("--help describes every flag", async () => {
  const { code, out } = await run(["migrate", "--help"]);
  expect(code).toBe(0);
  for (const word of ["--dry-run", "--print", "DATABASE_URL", "SLUICE_SCHEMA"]) expect(out).toContain(word);
});
