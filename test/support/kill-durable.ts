// Kills workerd in the middle of durable handlers, again and again, until all jobs have ended. Then no function has run for a
// step that was stored already, and every job has completed with the right output.
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { books } from "../../src/core/sql/index.ts";
import { bringForward, crons, startFaultDeployment } from "./fault-deployment.ts";
import type { TestDatabase } from "./test-database.ts";

const steps = 6;
const longestLifeMs = 400;
const drainsAtOnce = 2;

export async function killDurableJobs(
  db: TestDatabase,
  { kills, jobsPerKill }: { kills: number; jobsPerKill: number },
): Promise<void> {
  const jobs = (kills + 1) * jobsPerKill;
  await db.pool.query(
    "create table step_run (job uuid not null, step text not null, was_stored boolean not null)",
  );
  const enqueue = () =>
    db.pool.query(
      `select count(*) from sluice.enqueue_many('durable',
         array(select jsonb_build_object('steps', ${steps}, 'ms', random() * 20) from generate_series(1, $1)),
         max_attempts => 20)`,
      [jobsPerKill],
    );
  const completed = async () => (await db.run(books())).reduce((sum, entry) => sum + entry.completed, 0);
  const workerd = await startFaultDeployment(db);
  let isOver = false;
  const keepOn = async (round: () => Promise<unknown>) => {
    while (!isOver) await round();
  };
  await enqueue();
  const rounds = Promise.all([
    ...Array.from({ length: drainsAtOnce }, () => keepOn(() => workerd.fire(crons.drain))),
    keepOn(() => workerd.fire(crons.reap)),
    keepOn(() => bringForward(db).then(() => sleep(100))),
  ]);
  try {
    for (let killed = 0; killed < kills; killed++) {
      await enqueue();
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

  const { rows } = await db.pool.query(`
    select count(*)::int as runs, count(distinct (job, step))::int as steps,
           count(*) filter (where was_stored)::int as needless from step_run`);
  expect(rows).toEqual([{ runs: expect.any(Number), steps: jobs * (steps + 2), needless: 0 }]);
  expect(rows[0]?.runs).toBeGreaterThan(jobs * (steps + 2)); // some were cut off and ran again
  const outputs = await db.pool.query("select distinct output from sluice.output");
  expect(outputs.rows).toEqual([{ output: { sum: (steps * (steps + 1)) / 2 + 2 } }]);
  expect(await db.run(books())).toMatchObject([
    { enqueued: jobs, completed: jobs, pending: 0, leased: 0, dead: 0 },
  ]);
  console.log(`${kills} kills: ${rows[0]?.runs} functions ran for ${rows[0]?.steps} steps`);
}
