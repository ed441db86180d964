// What has become of the jobs that a run has replayed, at a cost that does not grow with the run.
import pg from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import {
  advanceDeadRuns,
  cancel,
  findDeadRun,
  prune,
  startDeadRun,
  stopDeadRun,
} from "../../src/core/sql/index.ts";
import { compile } from "../../src/core/sql/statement.ts";
import { measure } from "../support/explain.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
const client = new pg.Client({ connectionString: db.url });
beforeAll(() => client.connect());
afterAll(() => client.end());
beforeEach(() => emptyQueue(db.pool));

const bury = { kind: "bury", message: "no use" } as const;

async function makeDead(count: number): Promise<void> {
  for (let left = count; left > 0; left -= 1000) {
    await queue.enqueue(...times(Math.min(left, 1000), () => ({})));
    await queue.settle(await queue.claim({ limit: 1000 }), bury);
  }
}

async function replayAll(perMinute?: number): Promise<string> {
  const { id } = await db.run(startDeadRun("ann", { action: "replay", perMinute }));
  while (await db.run(advanceDeadRuns({ seconds: 60 })));
  return id;
}

const outcomes = async (id: string) => (await db.run(findDeadRun(id)))?.outcomes;

test("counts the replayed jobs by how they are now", async () => {
  await makeDead(10);
  const id = await replayAll();
  expect(await outcomes(id)).toEqual(counts({ waiting: 10 }));
  const jobs = await queue.claim({ limit: 7 });
  expect(await outcomes(id)).toEqual(counts({ waiting: 3, processing: 7 }));
  await queue.settle(jobs.slice(0, 4), complete);
  await queue.settle(jobs.slice(4), bury);
  const [waiting] = await queue.query<{ id: string }>("select id from sluice.ready order by id limit 1");
  await db.run(cancel(waiting?.id ?? ""));
  expect(await outcomes(id)).toEqual(counts({ completed: 4, dead: 3, waiting: 2, other: 1 }));
});

test("is null for a run that has replayed nothing, and for a discard", async () => {
  expect(await outcomes(await replayAll())).toBeNull();
  await makeDead(2);
  const { id } = await db.run(startDeadRun("ann", { action: "discard" }));
  while (await db.run(advanceDeadRuns({ seconds: 60 })));
  expect(await outcomes(id)).toBeNull();
});

test("does not count what a stop has taken back", async () => {
  await makeDead(5);
  const id = await replayAll(6);
  expect(await outcomes(id)).toEqual(counts({ waiting: 5 }));
  await db.run(stopDeadRun("bob", id));
  expect(await outcomes(id)).toEqual(counts({ waiting: 1 }));
});

test("looks at the first 250 of a large run, with at most 8,000 buffers", async () => {
  await makeDead(2_500);
  const id = await replayAll();
  await queue.settle(await queue.claim({ limit: 800 }), complete);
  expect(await db.run(findDeadRun(id))).toMatchObject({ done: 2_500, outcomes: { jobs: 250 } });
  const { text, values } = compile(findDeadRun(id));
  expect((await measure(client, text, values)).buffers).toBeLessThan(8_000);
});

test("is forgotten with its run", async () => {
  await makeDead(2);
  await replayAll();
  await queue.query("update sluice.dead_run set ended_at = now() - interval '31 days'");
  await db.run(prune({ limit: 10 }));
  expect(await queue.count("dead_run_job")).toBe(0);
});

function counts(some: Record<string, number>) {
  const jobs = Object.values(some).reduce((sum, value) => sum + value, 0);
  return { jobs, completed: 0, dead: 0, waiting: 0, processing: 0, other: 0, ...some };
}
