// Stop of a run: what it has planned and what is not due yet is dead again, as it was. Without the clock that is a minute.
import { beforeEach, describe, expect, test } from "vitest";
import type { NewDeadRun } from "../../src/core/dead-letters.ts";
import {
  advanceDeadRun,
  advanceDeadRuns,
  cancel,
  findDeadRun,
  foldDeaths,
  foldLedger,
  listDeadGroups,
  readHistory,
  startDeadRun,
  stopDeadRun,
} from "../../src/core/sql/index.ts";
import { differences } from "../support/balance.ts";
import { wrongGroups } from "../support/dead-groups.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

async function bury(count: number, fields = {}): Promise<string[]> {
  const ids = (await queue.enqueue(...times(count, () => fields))).map(({ id }) => id);
  for (let jobs = await queue.claim(); jobs.length > 0; jobs = await queue.claim())
    await queue.settle(jobs, { kind: "bury", message: "no use" });
  return ids;
}

const aMinute = { seconds: 60 };
/** Its first step gives out one job and plans those of the next minute. */
async function startPlanned(run: Partial<NewDeadRun> = {}) {
  const started = await db.run(startDeadRun("ann", { action: "replay", perMinute: 6, ...run }));
  return { ...started, step: await db.run(advanceDeadRuns(aMinute)) };
}
const stop = async (id: string) => (await db.run(stopDeadRun("bob", id)))?.run;
const find = (ids: readonly string[]) => Promise.all(ids.map((id) => queue.find(id)));
const statuses = async (ids: readonly string[]) => (await find(ids)).map(({ status }) => status);
/** As if the planned jobs were due. */
const comeDue = () => queue.query("update sluice.scheduled set run_at = run_at - interval '1 hour'");
const deaths = async () => (await db.run(listDeadGroups({ limit: 10 }))).groups[0]?.hours.at(-1);

describe("a run that is stopped", () => {
  test("has replayed what was due, and everything else is dead as it was", async () => {
    const ids = await bury(20);
    const before = await find(ids);
    const run = await startPlanned();
    expect((await statuses(ids)).filter((status) => status === "pending")).toHaveLength(7);
    expect(await db.run(findDeadRun(run.id))).toMatchObject({ done: 1, remaining: 19 });
    expect(await stop(run.id)).toMatchObject({ state: "stopped", done: 1, remaining: 19 });
    const [first, ...others] = await find(ids);
    expect(first).toMatchObject({ status: "pending", attempts: 0 });
    expect(others).toEqual(before.slice(1));
    await comeDue();
    expect(await queue.claim()).toHaveLength(1);
    expect(await db.run(advanceDeadRuns(aMinute))).toBeNull();
    expect(await differences(queue)).toEqual([]);
    expect(await queue.count("dead_run_ahead")).toBe(0);
  });

  test.each([false, true])("counts no death twice (folded: %s)", async (isFolded) => {
    await bury(5);
    const fold = async () => {
      if (!isFolded) return;
      await db.run(foldDeaths({ limit: 1000 }));
      await db.run(foldLedger({ limit: 1000 }));
    };
    await fold();
    const run = await startPlanned();
    await fold();
    await stop(run.id);
    await fold();
    expect(await deaths()).toBe(5);
    expect(await wrongGroups(queue)).toEqual([]);
    const [series] = (await db.run(readHistory({ range: "30m", queues: 10 }))).queues;
    expect(series?.died.reduce<number>((sum, died) => sum + (died ?? 0), 0)).toBe(5);
  });

  test("gives the jobs their payloads back that its patch has changed", async () => {
    const ids = await bury(3, { payload: { to: "a@example.com", size: 1 } });
    const run = await startPlanned({ type: "echo", patch: { to: "b@example.com", size: null } });
    const ahead = run.step?.check?.ahead ?? {};
    await db.run(advanceDeadRun(run.id, { ...aMinute, ahead, skips: [] }));
    expect((await find(ids)).map(({ payload }) => payload)).toEqual(
      times(3, () => ({ to: "b@example.com" })),
    );
    await stop(run.id);
    const [first, ...others] = (await find(ids)).map(({ payload }) => payload);
    expect(first).toEqual({ to: "b@example.com" });
    expect(others).toEqual(times(2, () => ({ to: "a@example.com", size: 1 })));
  });

  test("leaves jobs alone that have gone their own way", async () => {
    const ids = await bury(4);
    const run = await startPlanned();
    const [, cancelled, retried] = ids;
    await db.run(cancel(cancelled ?? ""));
    // One ran early and waits for a retry, at a time that the run has not given it.
    await queue.query("update sluice.scheduled set run_at = run_at + interval '1 s' where id = $1", [
      retried,
    ]);
    expect(await stop(run.id)).toMatchObject({ done: 3, remaining: 1 });
    expect(await statuses(ids)).toEqual(["pending", "cancelled", "pending", "dead"]);
    expect(await differences(queue)).toEqual([]);
  });

  test("blocks the keys again that its jobs had blocked", async () => {
    const first = await bury(1, { partitionKey: "a" });
    const [dead] = await bury(1, { partitionKey: "b" });
    const behind = await queue.enqueueOne({ partitionKey: "b" });
    const run = await startPlanned();
    expect(await statuses([...first, dead ?? ""])).toEqual(["pending", "pending"]);
    await stop(run.id);
    expect(await statuses([dead ?? "", behind])).toEqual(["dead", "pending"]);
    expect((await queue.claim()).map(({ id }) => id)).toEqual(first);
    const again = await db.run(startDeadRun("ann", { action: "replay" }));
    await db.run(advanceDeadRuns(aMinute));
    expect(await db.run(findDeadRun(again.id))).toMatchObject({ state: "done", done: 1 });
    const replayed = await queue.claim();
    await queue.settle(replayed, complete);
    expect([...replayed, ...(await queue.claim())].map(({ id }) => id)).toEqual([dead, behind]);
    expect(await differences(queue)).toEqual([]);
  });
});

test("a run that has planned its last jobs can be stopped until they are due, and then it ends", async () => {
  const ids = await bury(3);
  const run = await startPlanned();
  expect(await db.run(advanceDeadRuns(aMinute))).toBeNull(); // nothing to do before they are due
  expect(await db.run(findDeadRun(run.id))).toMatchObject({ state: "running", done: 1, remaining: 2 });
  await stop(run.id);
  expect(await statuses(ids)).toEqual(["pending", "dead", "dead"]);

  const next = await startPlanned();
  await queue.query("update sluice.dead_run set next_at = next_at - interval '1 hour'");
  await queue.query(
    `update sluice.dead_run_ahead
     set until = until - interval '1 hour', run_ats = array(select at - interval '1 hour' from unnest(run_ats) as at)`,
  );
  expect(await db.run(findDeadRun(next.id))).toMatchObject({ state: "running", done: 2, remaining: 0 });
  await db.run(advanceDeadRuns(aMinute));
  expect(await db.run(findDeadRun(next.id))).toMatchObject({ state: "done", done: 2 });
});
