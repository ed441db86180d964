// Starts the parts that all tests share: one real Postgres, a migrated template database that each file clones, the
// Neon-compatible proxy for the Worker's driver, and an endpoint for pushed jobs.
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import type { TestProject } from "vitest/node";
import { migrate } from "../../src/cli/migrate.ts";
import { startNeonProxy } from "../../src/local/neon-proxy.ts";
import { startPostgres } from "../../src/local/postgres.ts";
import { startReceiver } from "./receiver.ts";
import { asWorker, workerRole } from "./worker-role.ts";

export const templateDatabase = "sluice_template";
const workerDatabase = "sluice_worker";
const memoryDirectory = "/dev/shm";
const memoryBytes = 4 * 2 ** 30;

declare module "vitest" {
  interface ProvidedContext {
    isInMemory?: boolean;
    adminDatabaseUrl: string;
    workerDatabaseUrl: string;
    neonEndpoint: string;
    receiverUrl: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = mkdtempSync(join(placeFor(project), "sluice-test-"));
  // Postgres runs as another user if the tests run as root.
  chmodSync(directory, 0o755);
  const settings = { max_connections: "200" };
  const postgres = await startPostgres({
    directory: join(directory, "postgres"),
    ephemeral: true,
    settings,
    ...otherVersion(),
  });
  const proxy = await startNeonProxy({ postgresPort: postgres.port });
  const receiver = await startReceiver();

  const admin = new pg.Client({ connectionString: postgres.url("postgres") });
  await admin.connect();
  await admin.query(`create database ${templateDatabase}`);
  await migrate({ databaseUrl: postgres.url(templateDatabase) });
  await prepareTemplate(postgres.url(templateDatabase));
  await admin.query(`create database ${workerDatabase} template ${templateDatabase}`);
  await admin.end();

  project.provide("adminDatabaseUrl", postgres.url("postgres"));
  project.provide("workerDatabaseUrl", asWorker(postgres.url(workerDatabase)));
  project.provide("neonEndpoint", proxy.endpoint);
  project.provide("receiverUrl", receiver.url);
  return async () => {
    await receiver.close();
    await proxy.close();
    await postgres.stop();
    rmSync(directory, { recursive: true, force: true });
  };
}

/**
 * Every test truncates tables, which makes and removes files: in memory that takes a sixth of the time. The long tests stay on
 * the disk, since they have more data and measure.
 */
function placeFor(project: TestProject): string {
  const hasRoom = () => {
    const { bavail, bsize } = statfsSync(memoryDirectory);
    return bavail * bsize >= memoryBytes;
  };
  const isInMemory = project.config.provide.isInMemory && existsSync(memoryDirectory) && hasRoom();
  return isInMemory ? memoryDirectory : tmpdir();
}

/** `SLUICE_TEST_POSTGRES` names the programs of another version. test/postgres-versions runs the SQL tests on it. */
function otherVersion(): { bin?: string } {
  const bin = process.env.SLUICE_TEST_POSTGRES;
  return bin ? { bin } : {};
}

async function prepareTemplate(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(readFileSync(new URL("checks.sql", import.meta.url), "utf8"));
  await client.query(`create role ${workerRole} login`);
  await client.query("select sluice.grant_worker($1)", [workerRole]);
  await client.end();
}
