// A prepared transaction that commits late keeps its place in the order. It needs its own server: prepared transactions are
// off in the other tests.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { migrate } from "../../src/cli/migrate.ts";
import { advanceCursors, enqueue } from "../../src/core/sql/index.ts";
import { type PostgresServer, startPostgres } from "../../src/local/postgres.ts";
import { runOn } from "../model/gate/gate-sql.ts";
import { differences } from "../support/balance.ts";
import { type KeyedJobs, keyedJobsOf, numbered, ofKey } from "../support/keyed-jobs.ts";
import { createPgDatabase } from "../support/test-database.ts";
import { wrongKeys } from "../support/turns.ts";

let server: PostgresServer;
let pool: pg.Pool;
let jobs: KeyedJobs;
const directory = mkdtempSync(join(tmpdir(), "sluice-test-"));

beforeAll(async () => {
  const settings = { max_prepared_transactions: "5" };
  server = await startPostgres({ directory: join(directory, "postgres"), ephemeral: true, settings });
  const url = server.url("postgres");
  await migrate({ databaseUrl: url });
  pool = new pg.Pool({ connectionString: url });
  pool.on("error", () => {}); // the server stops before all connections are closed
  jobs = keyedJobsOf({ ...createPgDatabase(pool), pool, url });
}, 60_000);
afterAll(async () => {
  await pool?.end();
  await server?.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** Other keys' jobs come and go, and every cursor moves past them. */
async function moveOn(round: string): Promise<void> {
  for (const key of ["m", "n", "o"]) {
    await jobs.put(numbered(`${round}${key}`, 1, 30));
    const taken = await jobs.take({ run: 50 });
    await jobs.end(taken);
    await runOn(pool, advanceCursors());
  }
}

test.each(["commit", "rollback"] as const)(
  "a job that was prepared, and then %s, keeps its place and the key goes on",
  async (end) => {
    const client = await pool.connect();
    await client.query("begin");
    await runOn(client, enqueue(jobs.requests(`${end}1`)));
    await moveOn(`${end}x`);
    await client.query(`prepare transaction '${end}'`);
    client.release();
    await moveOn(`${end}y`);
    await pool.query(`${end} prepared '${end}'`);
    await jobs.put(`${end}2`);
    const order = ofKey(end, await jobs.drain());
    expect(order).toBe(end === "commit" ? "commit1 commit2" : "rollback2");
    expect(await wrongKeys(pool)).toEqual([]);
    expect(await differences(jobs.verbs)).toEqual([]);
  },
);
