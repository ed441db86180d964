// A database for one test file: a clone of the migrated template, with a `pg` pool.
import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, inject } from "vitest";
import type { Database } from "../../src/queue/ports.ts";
import { emptyQueue as emptyQueueText } from "./empty-queue.ts";
import { createPgDatabase } from "./pg-database.ts";

export { createPgDatabase };

export interface TestDatabase extends Database {
  readonly pool: pg.Pool;
  readonly url: string;
}

/** Call it at the top of a file. The database exists from `beforeAll` on and is dropped after the last test. */
export function useTestDatabase(): TestDatabase {
  const name = `test_${randomBytes(6).toString("hex")}`;
  const adminUrl = inject("adminDatabaseUrl");
  const url = adminUrl.replace(/[^/]+$/, name);
  const pool = new pg.Pool({ connectionString: url, max: 80 });
  pool.on("error", () => {}); // a failed test may leave queries running when the database is dropped

  beforeAll(() =>
    runAsAdmin(adminUrl, `create database ${name} template sluice_template strategy file_copy`),
  );
  afterAll(async () => {
    await pool.end();
    await runAsAdmin(adminUrl, `drop database ${name} with (force)`);
  });
  return { ...createPgDatabase(pool), pool, url };
}

async function runAsAdmin(adminUrl: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  await client.query(text);
  await client.end();
}

export async function emptyQueue(pool: pg.Pool): Promise<void> {
  await pool.query(emptyQueueText);
}
