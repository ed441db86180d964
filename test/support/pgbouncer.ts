// A real PgBouncer in transaction mode (Debian's package `pgbouncer`), in front of the test's Postgres.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawnGuarded } from "../../src/local/guard.ts";
import { freePort } from "../../src/local/ports.ts";
import { postgresOwner } from "../../src/local/postgres-owner.ts";
import { connectTo } from "./app-beside.ts";

export interface PgBouncer {
  url: string;
  stop(): Promise<void>;
}

const startWithinMs = 5_000;

export async function startPgBouncer(databaseUrl: string): Promise<PgBouncer> {
  const directory = mkdtempSync(join(tmpdir(), "sluice-pgbouncer-"));
  const url = new URL(databaseUrl);
  const port = await freePort();
  const config = [
    "[databases]",
    `* = host=${url.hostname} port=${url.port} user=${url.username}`,
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
  const pooler = spawnGuarded("pgbouncer", [file], {
    cwd: tmpdir(),
    env: { PATH: `${process.env.PATH}:/usr/sbin` },
    stopSignals: ["TERM"],
    owner: postgresOwner(),
  });
  url.port = String(port);
  const stop = async () => {
    await pooler.stop();
    rmSync(directory, { recursive: true, force: true });
  };
  await untilConnected(url.href);
  return { url: url.href, stop };
}

async function untilConnected(url: string): Promise<void> {
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
