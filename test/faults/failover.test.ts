// A failover to a standby that missed the last transactions. The new primary does not know the last claims, and its
// sequences are behind, so it claims the same jobs again. It must refuse the workers that claimed them before.
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ClaimedJob, generationOf } from "../../src/core/job.ts";
import { claim, enqueue, settle } from "../../src/core/sql/index.ts";
import type { PostgresServer } from "../../src/local/postgres.ts";
import { newJob } from "../support/jobs.ts";
import { type Pair, query, startPair } from "../support/standby.ts";
import { createPgDatabase } from "../support/test-database.ts";
import { complete, times } from "../support/verbs.ts";

let pair: Pair;
const pools: pg.Pool[] = [];
beforeAll(async () => {
  pair = await startPair();
}, 120_000);
afterAll(async () => {
  for (const pool of pools) await pool.end();
  await pair.stop();
});

function connect(server: PostgresServer) {
  const pool = new pg.Pool({ connectionString: server.url("postgres") });
  pool.on("error", () => {}); // the primary stops while connections are open
  pools.push(pool);
  return createPgDatabase(pool);
}

async function until(server: PostgresServer, condition: string): Promise<void> {
  for (;;) {
    const [row] = await query<{ is_true: boolean }>(server, `select ${condition} as is_true`);
    if (row?.is_true) return;
  }
}

async function claimFifty(db: ReturnType<typeof connect>): Promise<ClaimedJob[]> {
  const jobs: ClaimedJob[] = [];
  for (let n = 0; n < 5; n++) {
    const wanted = { queue: "default", types: ["echo"], limit: 10, leaseSeconds: 300 };
    jobs.push(...(await db.run(claim(wanted))).jobs);
  }
  return jobs;
}

test("after a failover old leases are refused, new ones are not, and generations rise", async () => {
  const old = connect(pair.primary);
  await old.run(enqueue(times(50, () => newJob())));
  // Postgres logs a sequence 32 numbers ahead. These calls use them up, so that both servers give the same next number.
  await query(pair.primary, "select setval('sluice.lease_generation', 1)");
  const [here] = await query<{ lsn: string }>(pair.primary, "select pg_current_wal_lsn() as lsn");
  await until(pair.standby, `pg_last_wal_replay_lsn() >= '${here?.lsn}'`);
  await query(pair.standby, "alter system set primary_conninfo = ''");
  await query(pair.standby, "select pg_reload_conf()");
  await until(pair.standby, "not exists (select from pg_stat_wal_receiver)");

  const stale = await claimFifty(old);
  await pair.primary.stop();
  await query(pair.standby, "select pg_promote()");
  const current = connect(pair.standby);
  const newJobs = await claimFifty(current);

  expect(newJobs.map((job) => job.id).sort()).toEqual(stale.map((job) => job.id).sort());
  const generation = (job: ClaimedJob) => BigInt(generationOf(job.leaseKey));
  const last = new Map(stale.map((job) => [job.id, generation(job)]));
  for (const job of newJobs) expect(generation(job)).toBeGreaterThan(last.get(job.id) ?? 0n);
  const settled = async (jobs: ClaimedJob[]) =>
    (await current.run(settle(jobs.map((job) => ({ job, outcome: complete }))))).filter((job) => job.applied);
  expect(await settled(stale)).toHaveLength(0);
  expect(await settled(newJobs)).toHaveLength(50);
});
