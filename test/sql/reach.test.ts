// check_reach: it finds jobs that no claim would find and repairs them. The engine makes none, so the tests do it by hand.
import { beforeEach, expect, test } from "vitest";
import { advanceCursors, checkReach } from "../../src/core/sql/index.ts";
import { reap } from "../../src/queue/reap.ts";
import { runAndRecord } from "../../src/queue/rounds.ts";
import { differences } from "../support/balance.ts";
import { createTestPorts } from "../support/ports.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, only, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const ports = verbsOf(db);
beforeEach(async () => {
  await emptyQueue(db.pool);
  await ports.enqueue(...times(50, () => ({})));
  await ports.settle(await ports.claim(), complete);
  for (let n = 0; n < 3; n++) await db.run(advanceCursors());
});

const check = async () => await db.run(checkReach());
const hide = async (delaySeconds?: number) => {
  const id = await ports.enqueueOne(delaySeconds ? { delaySeconds } : {});
  await ports.query("update sluice.ready set seq = 1 where id = $1", [id]);
  await ports.query("update sluice.scheduled set run_at = now() - interval '1 day' where id = $1", [id]);
  return id;
};

test("a queue in normal use has no unreachable jobs", async () => {
  await ports.enqueue({}, { delaySeconds: 60 });
  expect(await check()).toBe(0);
});

test("a ready job before its lane's cursor is found and gets a new seq", async () => {
  const id = await hide();
  expect(await ports.claim()).toEqual([]);
  expect(await check()).toBe(1);
  expect(await check()).toBe(0);
  expect(await ports.claim()).toMatchObject([{ id }]);
  expect(await differences(ports)).toEqual([]);
});

test("a scheduled job before the cursor is found, and the next advance makes it ready", async () => {
  const id = await hide(60);
  expect(await ports.claim()).toEqual([]);
  expect(await check()).toBe(1);
  expect(await check()).toBe(0); // a gap covers it now
  await db.run(advanceCursors());
  expect(await ports.claim()).toMatchObject([{ id }]);
  expect(await differences(ports)).toEqual([]);
});

test("jobs that a gap covers are not counted", async () => {
  const client = await db.pool.connect();
  await client.query("begin");
  await client.query("select sluice.enqueue('echo')");
  for (let n = 0; n < 3; n++) {
    await ports.enqueue(...times(5, () => ({})));
    await ports.settle(await ports.claim(), complete);
    await db.run(advanceCursors());
  }
  await client.query("commit");
  client.release();
  expect(await ports.claim()).toEqual([]);
  expect(await check()).toBe(0);
  await db.run(advanceCursors());
  expect(await ports.claim()).toHaveLength(1);
});

test("a check reads some pages, and the next check those that follow", async () => {
  await ports.query(
    "select count(*) from sluice.enqueue_many('other', array_fill('{}'::jsonb, array[2000]))",
  );
  const id = await hide();
  const found: number[] = [];
  for (let n = 0; n < 40; n++)
    found.push(only(await ports.query<{ n: number }>("select sluice.check_reach(1) as n")).n);
  expect(found.filter((n) => n > 0)).toEqual([1]);
  expect(await ports.claim()).toMatchObject([{ id }]);
});

test("a reap round repairs unreachable jobs and says how many", async () => {
  const ids = [await hide(), await hide(60)];
  const reaper = createTestPorts(db, []);
  await runAndRecord(reaper, { kind: "reap" }, () => reap(reaper));
  const { steps } = only(
    await ports.query<{ steps: object }>("select steps from sluice.round where kind = 'reap'"),
  );
  expect(steps).toMatchObject({ unreachable: { did: [2] } });
  expect((await ports.claim()).map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
});
