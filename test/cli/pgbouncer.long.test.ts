// migrate through a real PgBouncer in transaction mode (Debian's package `pgbouncer`).
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { migrate } from "../../src/cli/migrate.ts";
import { type Guarded, spawnGuarded } from "../../src/local/guard.ts";
import { freePort } from "../../src/local/ports.ts";
import { postgresOwner } from "../../src/local/postgres-owner.ts";
import { connectTo, startAppBeside } from "../support/app-beside.ts";
import { useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const startWithinMs = 5_000;
const directory = mkdtempSync(join(tmpdir(), "sluice-pgbouncer-"));
let pgbouncer: Guarded;
let url: string;

beforeAll(async () => {
  const server = new URL(db.url);
  const port = await freePort();
  const config = [
    "[databases]",
    `* = host=${server.hostname} port=${server.port} user=${server.username}`,
    "[pgbouncer]",
    "pool_mode = transaction",
    "auth_type = any",
    "default_pool_size = 3",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
  ];
  const file = join(directory, "pgbouncer.ini");
  writeFileSync(file, config.join("\n"));
  chmodSync(directory, 0o755); // pgbouncer runs as another user if the tests run as root
  pgbouncer = spawnGuarded("pgbouncer", [file], {
    cwd: tmpdir(),
    env: { PATH: `${process.env.PATH}:/usr/sbin` },
    stopSignals: ["TERM"],
    owner: postgresOwner(),
  });
  server.port = String(port);
  url = server.href;
  await db.pool.query("create table account (id int)");
  await untilConnected();
});
afterAll(async () => {
  await pgbouncer?.stop();
  rmSync(directory, { recursive: true, force: true });
});

test("an app on the same pooler can read its table all the time, and the next migrate succeeds", async () => {
  const app = startAppBeside(url);
  for (const schema of ["one", "two", "one"]) await migrate({ databaseUrl: url, schema });
  await Promise.all([1, 2, 3].map(() => migrate({ databaseUrl: url, schema: "three" })));
  const { reads, errors } = await app.stop();
  expect(errors).toEqual([]);
  expect(reads).toBeGreaterThan(0);
});

async function untilConnected(): Promise<void> {
  const giveUpAt = Date.now() + startWithinMs;
  for (;;) {
    try {
      return await (await connectTo(url)).end();
    } catch (error) {
      if (Date.now() > giveUpAt)
        throw new Error("PgBouncer does not answer: is the package pgbouncer installed?", { cause: error });
    }
  }
}
