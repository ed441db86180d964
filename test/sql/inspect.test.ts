// inspect: it finds jobs in impossible states, which these tests make by hand, and finds none in a queue in normal use.
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { cancel, inspect, reapLeases } from "../../src/core/sql/index.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { startTraffic } from "../support/traffic.ts";
import { complete, only, times, verbsOf } from "../support/verbs.ts";
import { wholeLife } from "../support/whole-life.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
/** Constraints that only the tests have would refuse the rows to be found. */
beforeAll(async () => {
  const constraints = await queue.query<{ text: string }>(`
    select format('alter table %s drop constraint %I', conrelid::regclass, conname) as text
    from pg_constraint
    where contype = 'c' and coninhcount = 0
      and conrelid = any('{sluice.job, sluice.ready, sluice.scheduled, sluice.lease, sluice.done}'::regclass[])`);
  for (const { text } of constraints) await queue.query(text);
});
beforeEach(() => emptyQueue(db.pool));

const look = async () => await db.run(inspect());
const found = () =>
  queue.query<{ kind: string; id: string; what: string }>(
    "select kind, id, what from sluice.impossible_state order by kind, what",
  );

test.each([
  "job set max_attempts = 21",
  "job set max_attempts = 0",
  "job set payload = '[]'",
  "lease set ids = '{}'",
  "done set ids = '{}'",
])("a table constraint refuses: %s", async (change) => {
  await queue.enqueue({}, {});
  await queue.settle([await queue.claimOne()], complete);
  await queue.claimOne();
  await expect(queue.query(`update sluice.${change}`)).rejects.toMatchObject({ code: "23514" });
});

describe("a job in an impossible state", () => {
  test.each([
    [
      "in two tables",
      "insert into sluice.scheduled (run_at, id, lane) select now(), id, lane from sluice.ready where id = $1",
      "is in ready and scheduled at once",
      "delete from sluice.scheduled where id = $1",
    ],
    [
      "waiting and in a lease",
      `insert into sluice.lease (key, deadline, started_at, lane, ids)
       select gen_random_uuid(), now() + interval '1 h', now(), lane, array[id] from sluice.ready where id = $1`,
      "is in lease and ready at once",
      "delete from sluice.lease where $1 = any(ids)",
    ],
    [
      "waiting and completed",
      `insert into sluice.done (hi_id, lo_id, started_at, finished_at, lane, ids)
       select id, id, now(), now(), lane, array[id] from sluice.ready where id = $1`,
      "is in done and ready at once",
      "delete from sluice.done where hi_id = $1",
    ],
    [
      "in no table",
      "update sluice.ready set id = gen_random_uuid() where id = $1",
      "is in none of ready, scheduled, blocked, lease, done and closed",
      "insert into sluice.ready (seq, id, lane) select nextval('sluice.ready_seq'), id, lane from sluice.job where id = $1",
    ],
    [
      "past its last attempt",
      "update sluice.ready set attempt = 6 where id = $1",
      "is at attempt 6 of at most 5",
      "update sluice.ready set attempt = 5 where id = $1",
    ],
  ])("(%s) is reported until it is repaired", async (_, harm, what, repair) => {
    const [, job] = await queue.enqueue(...times(3, () => ({ maxAttempts: 5 })));
    const id = job?.id ?? "";
    expect(await look()).toEqual({ looked: 3, wrong: 0 });
    await queue.query(harm, [id]);
    for (let round = 0; round < 2; round++) expect(await look()).toEqual({ looked: 3, wrong: 1 });
    expect(await found()).toEqual([{ kind: "job", id, what }]);
    await queue.query(repair, [id]);
    expect(await look()).toEqual({ looked: 3, wrong: 0 });
    expect(await found()).toEqual([]);
  });
});

describe("an invalid packed row is reported", () => {
  const strangeIds = "array(select unnest(ids) as id order by id desc)";
  test.each([
    ["lease", "attempts = '{1}'", "attempts = null", "has 3 jobs and 1 attempts"],
    ["lease", "abandonments = '{1,1}'", "abandonments = null", "has 3 jobs and 2 abandonments"],
    ["lease", `ids = ${strangeIds}`, "ids = $1", "has jobs that are not in the order of their ids"],
    ["done", "attempts = '{1,2}'", "attempts = null", "has 3 jobs and 2 attempts"],
    ["done", "lo_id = hi_id", "lo_id = ids[1]", "has a lowest or highest id that is not its own"],
  ])("%s, %s", async (kind, harm, repair, what) => {
    await queue.enqueue({}, {}, {});
    const jobs = await queue.claim();
    if (kind === "done") await queue.settle(jobs, complete);
    expect((await look()).wrong).toBe(0);
    await queue.query(`update sluice.${kind} set ${harm}`);
    expect((await look()).wrong).toBe(1);
    expect(await found()).toEqual([{ kind, id: expect.any(String), what }]);
    await queue.query(
      `update sluice.${kind} set ${repair}`,
      repair.includes("$1") ? [jobs.map(({ id }) => id).toSorted()] : [],
    );
    expect((await look()).wrong).toBe(0);
  });
});

test("a lease that is gone and a job that is pruned are no longer reported", async () => {
  await queue.enqueue({}, {});
  await queue.claim({ limit: 1 });
  await queue.query("update sluice.lease set attempts = '{1,1}'");
  await queue.query("delete from sluice.ready");
  expect((await look()).wrong).toBe(2);
  await queue.query("delete from sluice.lease");
  await queue.query("delete from sluice.job");
  expect(await look()).toEqual({ looked: 0, wrong: 0 });
});

test("an inspection reads a bounded number of jobs, and those that were wrong before", async () => {
  await queue.query("select sluice.enqueue_many('echo', array_fill('{}'::jsonb, array[1200]))");
  await queue.query(
    "delete from sluice.ready where id in (select id from sluice.job order by id offset 600 limit 3)",
  );
  const some = async () =>
    only(await queue.query<{ looked: number; wrong: number }>("select * from sluice.inspect(400)"));
  await expect.poll(some, { timeout: 10_000, interval: 5 }).toEqual({ looked: 400, wrong: 3 });
  for (let round = 0; round < 5; round++) expect(await some()).toEqual({ looked: 400, wrong: 3 });
});

test("at most 100 impossible states are kept", async () => {
  await queue.query("select sluice.enqueue_many('echo', array_fill('{}'::jsonb, array[300]))");
  await queue.query("delete from sluice.ready");
  for (let round = 0; round < 3; round++) expect(await look()).toEqual({ looked: 300, wrong: 100 });
});

test("concurrent inspections all answer with the stored result", async () => {
  await queue.enqueueOne();
  await queue.query("delete from sluice.ready");
  expect((await look()).wrong).toBe(1);
  const looks = await Promise.all(times(4, look));
  expect(new Set(looks.map(({ wrong }) => wrong))).toEqual(new Set([1]));
});

test("nothing is wrong after all verbs have run, nor after the last check of a reconciled job", async () => {
  await wholeLife(db);
  await queue.enqueueOne({ maxAttempts: 1 });
  await queue.settle(await queue.claim(), { kind: "snooze", retryInSeconds: 0, uses: 1 });
  expect((await queue.claim()).map(({ attempt }) => attempt)).toEqual([2]);
  expect(await look()).toEqual({ looked: 202, wrong: 0 });
  expect(await found()).toEqual([]);
});

test("nothing is ever wrong while jobs are enqueued, claimed, settled, cancelled and reaped", {
  timeout: 30_000,
}, async () => {
  const traffic = startTraffic(db, { connections: 3 });
  for (let round = 0; round < 25; round++) {
    const abandoned = await queue.claim({ limit: 2, leaseSeconds: -1 });
    const [state, id] = await Promise.all([look(), queue.enqueueOne()]);
    expect([state.wrong, await found()]).toEqual([0, []]);
    await Promise.all([
      look(),
      db.run(cancel(id)),
      db.run(reapLeases({ limit: abandoned.length + 1 })),
      traffic.more(1),
    ]);
  }
  await traffic.stop();
  expect(traffic.errors).toEqual([]);
  expect([await look(), await found()]).toMatchObject([{ wrong: 0 }, []]);
});
