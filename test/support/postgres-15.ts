// The oldest PostgreSQL that Sluice supports, from the system's packages: started on a free port for one test file.
import { chownSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { spawnGuarded } from "../../infra/local/guard.ts";
import { freePort } from "../../infra/local/ports.ts";
import { serverState } from "../../infra/local/postgres-cluster.ts";
import { postgresOwner } from "../../infra/local/postgres-owner.ts";

export const postgres15Programs = "/usr/lib/postgresql/15/bin";
export const hasPostgres15 = existsSync(join(postgres15Programs, "postgres"));

export interface Postgres15 {
  url: string;
  stop(): Promise<void>;
}

const readyWithinMs = 30_000;
const pollMs = 20;

export async function startPostgres15(): Promise<Postgres15> {
  const owner = postgresOwner();
  const directory = mkdtempSync(join(tmpdir(), "sluice-postgres-15-"));
  if (owner) chownSync(directory, owner.uid, owner.gid);
  const data = join(directory, "data");
  const options = { cwd: directory, env: { LC_ALL: "C", TZ: "UTC" }, owner };

  const initdb = spawnGuarded(
    join(postgres15Programs, "initdb"),
    ["-D", data, "--username=sluice", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"],
    { ...options, stopSignals: ["TERM"] },
  );
  const ended = await initdb.exited;
  if (ended !== "ended with code 0") throw new Error(`initdb of PostgreSQL 15 ${ended}`);

  const port = await freePort();
  const settings = [`port=${port}`, "listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off"];
  const server = spawnGuarded(
    join(postgres15Programs, "postgres"),
    ["-D", data, ...settings.flatMap((setting) => ["-c", setting])],
    { ...options, stopSignals: ["INT", "QUIT"] },
  );
  const stop = async () => {
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
  };
  const giveUpAt = Date.now() + readyWithinMs;
  while (serverState(data)?.status !== "ready") {
    if (Date.now() > giveUpAt) {
      await stop();
      throw new Error("PostgreSQL 15 did not start");
    }
    await sleep(pollMs);
  }
  return { url: `postgresql://sluice:sluice@127.0.0.1:${port}/postgres`, stop };
}
