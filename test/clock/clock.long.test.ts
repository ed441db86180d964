// The database's clock steps under real drains and reap rounds: no job is stuck and none is lost. Needs libfaketime
// (`apt-get install faketime`) and fails without it.
import pg from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import * as z from "zod";
import { migrate } from "../../src/cli/migrate.ts";
import { enqueue as enqueueStatement } from "../../src/core/sql/index.ts";
import { defineJob } from "../../src/jobs/define.ts";
import { drainQueue } from "../../src/queue/drain/drain.ts";
import type { Database } from "../../src/queue/ports.ts";
import { reap } from "../../src/queue/reap.ts";
import { differences } from "../support/balance.ts";
import { newJob } from "../support/jobs.ts";
import { createTestPorts, roomyBudget } from "../support/ports.ts";
import { type SteppingPostgres, startSteppingPostgres } from "../support/stepping-clock.ts";
import { createPgDatabase, emptyQueue } from "../support/test-database.ts";
import { times, verbsOf } from "../support/verbs.ts";

let server: SteppingPostgres;
let pool: pg.Pool;
let db: Database;

beforeAll(async () => {
  server = await startSteppingPostgres();
  const url = server.url("postgres");
  await migrate({ databaseUrl: url });
  pool = new pg.Pool({ connectionString: url, max: 8 });
  pool.on("error", () => {}); // the server stops before all connections are closed
  db = createPgDatabase(pool);
});
afterAll(async () => {
  await pool?.end();
  await server?.stop();
});
beforeEach(async () => {
  server.setAhead(0);
  await emptyQueue(pool);
});

const backoff = { baseSeconds: 1, maxSeconds: 1, jitterSeconds: 0 };
const any = z.object({});
const types = [
  defineJob("echo", { payload: any, run: () => {} }),
  // Half of them fail at first, which is not enough to open a breaker.
  defineJob("second_try", {
    payload: z.object({ fails: z.boolean() }),
    backoff,
    run: ({ fails }, { attempt }) =>
      fails && attempt === 1 ? Promise.reject(new Error("not yet")) : undefined,
  }),
  defineJob("rated", { payload: any, rate: { limit: 5, per: 1 }, run: () => {} }),
];
const jobsOfStep = 60;
/** Longer than the longest delay, backoff and rate window together, with a wide margin for a busy machine. */
const withinMs = 60_000;

const enqueueSome = () =>
  db.run(
    enqueueStatement(
      times(jobsOfStep, (n) =>
        newJob({
          type: types[n % 3]?.type ?? "",
          payload: { fails: n % 2 === 0 },
          ...(n % 2 === 0 ? { delaySeconds: 1 + (n % 3) } : {}),
        }),
      ),
    ),
  );

async function pending(): Promise<number> {
  const { rows } = await pool.query(
    "select coalesce(sum(pending + leased), 0)::int as jobs from sluice.books",
  );
  return rows[0].jobs;
}

/** Runs drains and reap rounds, as the crons do, until all jobs are completed. */
async function workOff(): Promise<void> {
  const ports = createTestPorts(db, types);
  const giveUpAt = Date.now() + withinMs;
  while ((await pending()) > 0 && Date.now() < giveUpAt) {
    await drainQueue(ports, { queue: "default", budget: { ...roomyBudget, claimForMs: 1_000 }, worker: "w" });
    await reap(ports);
  }
  const { rows } = await pool.query(
    "select type, status, run_at, id from sluice.jobs left join sluice.scheduled using (id) where status <> 'completed'",
  );
  expect(rows).toEqual([]);
}

test.each([
  { name: "back by 10 s", steps: [-10] },
  { name: "back by an hour", steps: [-3600] },
  { name: "forward by an hour", steps: [3600] },
  { name: "back by 10 s, three times", steps: [-10, -20, -30] },
])("all jobs are completed when the clock steps $name", async ({ steps }) => {
  await enqueueSome();
  await workOff();
  for (const ahead of steps) {
    await enqueueSome();
    server.setAhead(ahead);
    await enqueueSome();
    if (ahead > 0) await workOff();
  }
  // Jobs that were delayed before a step back are due later by as much, so the clock is set right again.
  await enqueueSome();
  if (steps.every((ahead) => ahead < 0)) {
    await workOffWhatIsDue();
    server.setAhead(0);
  }
  await workOff();
  expect(await differences(verbsOf({ ...db, pool, url: "" }))).toEqual([]);
});

test("jobs that are enqueued after the clock stepped forward and back are completed at once", async () => {
  await enqueueSome();
  await workOff();
  server.setAhead(3600);
  await enqueueSome();
  await workOff();
  server.setAhead(0);
  await enqueueSome();
  await workOff();
  expect(await differences(verbsOf({ ...db, pool, url: "" }))).toEqual([]);
});

/** Counts the open jobs that were written after the last step, without those that were delayed before it. */
async function workOffWhatIsDue(): Promise<void> {
  const ports = createTestPorts(db, types);
  const giveUpAt = Date.now() + withinMs;
  let left = 1;
  while (left > 0 && Date.now() < giveUpAt) {
    await drainQueue(ports, { queue: "default", budget: { ...roomyBudget, claimForMs: 1_000 }, worker: "w" });
    await reap(ports);
    const { rows } = await pool.query(`
      select (select count(*) from sluice.ready) + (select count(*) from sluice.lease)
             + (select count(*) from sluice.scheduled where run_at < clock_timestamp() + interval '4 s') as jobs`);
    left = Number(rows[0].jobs);
  }
  expect(left).toBe(0);
}
