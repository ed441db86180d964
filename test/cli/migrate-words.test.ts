// The errors of `sluice migrate`: one line that says what is wrong and what to do, without secrets.
import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { migrate } from "../../src/cli/migrate.ts";
import { freePort } from "../../src/local/ports.ts";
import { type PostgresServer, startPostgres } from "../../src/local/postgres.ts";

const secret = "s3cret-word";
const server = new URL(inject("adminDatabaseUrl"));

describe("an invalid DATABASE_URL is explained", () => {
  test.each([
    ["garbage", "DATABASE_URL is not a connection string"],
    [`mysql://u:${secret}@h/d`, "DATABASE_URL is not a Postgres connection string"],
    [`postgresql://u:${secret}@host`, "DATABASE_URL names no database"],
    [`postgresql://u:${secret}#1@host/d`, "DATABASE_URL is not a connection string"],
    [`postgresql://u:1#${secret}@host/d`, "DATABASE_URL names no database"],
    [`postgresql://u:1/${secret}@host/d`, "DATABASE_URL names no database"],
    [`postgresql://u:1?${secret}@host/d`, "DATABASE_URL names no database"],
  ])("%s", async (url, words) => {
    expect(await failure(url)).toMatch(`${words}; its form is postgresql://user:password@host/`);
  });
});

describe("the error names the part of DATABASE_URL at fault when", () => {
  test("the host name is unknown", async () => {
    expect(await failure(`postgresql://u:${secret}@no-such-host.invalid/d`)).toBe(
      'the host "no-such-host.invalid" of DATABASE_URL is unknown; check its name',
    );
  });

  test.each(["127.0.0.1", "localhost"])("nothing listens on the port of %s", async (host) => {
    const port = await freePort();
    expect(await failure(`postgresql://u:${secret}@${host}:${port}/d`)).toMatch(
      `no server answers at ${host}:${port} of DATABASE_URL; check host and port`,
    );
  });
});

describe("the error says what to change when", () => {
  const directory = mkdtempSync(join(tmpdir(), "sluice-words-"));
  let strict: PostgresServer;
  beforeAll(async () => {
    chmodSync(directory, 0o755);
    const hbaFile = join(directory, "hba.conf");
    writeFileSync(hbaFile, "host all all 127.0.0.1/32 scram-sha-256\n", { mode: 0o644 });
    const settings = { hba_file: hbaFile };
    strict = await startPostgres({ directory: join(directory, "data"), ephemeral: true, settings });
  });
  afterAll(async () => {
    await strict.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  test("the password is wrong", async () => {
    expect(await failure(strict.url("postgres").replace(":sluice@", `:${secret}@`))).toBe(
      'the server refuses the user "sluice" (password authentication failed for user "sluice"); check user and password of DATABASE_URL',
    );
  });

  test("the password is missing", async () => {
    expect(await failure(strict.url("postgres").replace(":sluice@", "@"))).toMatch(
      "the server asks for a password, and DATABASE_URL has none",
    );
  });
});

test("an unknown database is named", async () => {
  const url = `postgresql://sluice:${secret}@${server.host}/not%20there`;
  expect(await failure(url)).toBe(
    'there is no database "not there" on 127.0.0.1; create it, or correct DATABASE_URL',
  );
});

test.each(["MySchema", 'we"ird', "with space", "my-jobs", "", "x".repeat(64)])(
  "a schema name that the Worker refuses is refused here too: %o",
  async (schema) => {
    await expect(migrate({ databaseUrl: server.href, schema })).rejects.toThrow(
      "SLUICE_SCHEMA must be a lower case name of letters, digits and _, with at most 63 characters and no digit first",
    );
  },
);

describe("the command", () => {
  test("ends with code 2 and the one line", async () => {
    expect(await runCommand({ DATABASE_URL: `mysql://u:${secret}@h/d` })).toEqual({
      code: 2,
      output:
        "sluice: DATABASE_URL is not a Postgres connection string; its form is postgresql://user:password@host/database\n",
    });
  });

  test("refuses an empty schema name, as the Worker does", async () => {
    expect(await runCommand({ DATABASE_URL: server.href, SLUICE_SCHEMA: "" })).toMatchObject({ code: 1 });
  });
});

async function failure(databaseUrl: string): Promise<string> {
  const words = await migrate({ databaseUrl }).then(
    () => "",
    (error: Error) => error.message,
  );
  expect(words).not.toContain(secret);
  expect(words).not.toContain("\n");
  return words;
}

function runCommand(env: Record<string, string>): Promise<{ code: number; output: string }> {
  const { PATH = "" } = process.env;
  return new Promise((resolve) => {
    const main = new URL("../../src/cli/main.ts", import.meta.url).pathname;
    const run = execFile(process.execPath, [main, "migrate"], { env: { PATH, ...env } }, (_, out, err) =>
      resolve({ code: run.exitCode ?? -1, output: out + err }),
    );
  });
}
