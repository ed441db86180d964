// A Worker is killed again and again, as Cloudflare may do to any invocation: no job is lost, and none is recorded as
// completed twice.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { books } from "../../src/core/sql/index.ts";
import { bringForward, crons, startFaultDeployment } from "../support/fault-deployment.ts";
import { useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const kills = 25;
const jobs = 2500;
/** The rest is enqueued between the kills, so that each kill interrupts work. */
const jobsAtFirst = 2500;
const longestLifeMs = 300;
const drainsAtOnce = 3;

async function enqueue(count: number): Promise<void> {
  const payloads = "array(select jsonb_build_object('ms', random() * 10) from generate_series(1, $1))";
  const text = `select count(*) from sluice.enqueue_many('work', ${payloads}, max_attempts => 20)`;
  await db.pool.query(text, [count]);
}

const completed = async () => (await db.run(books())).reduce((sum, entry) => sum + entry.completed, 0);

test(`${kills} kills over ${jobs} jobs: none is lost, and each is completed once`, {
  timeout: 180_000,
}, async () => {
  const workerd = await startFaultDeployment(db);
  let isOver = false;
  const keepOn = async (step: () => Promise<unknown>) => {
    while (!isOver) await step();
  };
  await enqueue(jobsAtFirst);
  const rounds = Promise.all([
    ...Array.from({ length: drainsAtOnce }, () => keepOn(() => workerd.fire(crons.drain))),
    keepOn(() => workerd.fire(crons.reap)),
    keepOn(() => bringForward(db).then(() => sleep(100))),
  ]);
  try {
    for (let killed = 0; killed < kills; killed++) {
      await enqueue((jobs - jobsAtFirst) / kills);
      await sleep(Math.random() * longestLifeMs); // a random moment
      workerd.kill();
      await workerd.started();
    }
    await expect.poll(completed, { timeout: 120_000, interval: 200 }).toBe(jobs);
  } finally {
    isOver = true;
    await rounds;
    await workerd.stop();
  }

  const done = await db.pool.query(
    "select count(*)::int as completions, count(distinct id)::int as jobs from sluice.done, unnest(ids) as id",
  );
  expect(done.rows).toEqual([{ completions: jobs, jobs }]);
  const abandoned = await db.pool.query(
    "select message, count(*)::int from sluice.failed_attempt group by 1",
  );
  expect(abandoned.rows).toEqual([{ message: "the lease ran out", count: expect.any(Number) }]);
  expect(abandoned.rows[0]?.count).toBeGreaterThan(kills);
  console.log(`${kills} kills: ${abandoned.rows[0]?.count} attempts of ${jobs} jobs were abandoned`);
  const idle = { pending: 0, leased: 0, dead: 0, discarded: 0, cancelled: 0 };
  expect(await db.run(books())).toMatchObject([{ enqueued: jobs, completed: jobs, ...idle }]);
  const left =
    "select from sluice.ready union all select from sluice.scheduled union all select from sluice.lease";
  expect((await db.pool.query(left)).rowCount).toBe(0);
});
