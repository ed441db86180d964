// idle flows: the running flows that made no progress for the longest time, as the snapshot has them.
import { beforeEach, expect, test } from "vitest";
import { foldFlows, snapshot } from "../../src/core/sql/index.ts";
import { measure, scansOf, watchStatements } from "../support/explain.ts";
import { complete, flowJobsOf } from "../support/flow-jobs.ts";
import { inSession } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const jobs = flowJobsOf(db.pool);
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const idle = async () => (await db.run(snapshot())).idleFlows;
const idsOf = async () => (await idle()).map(({ flowId }) => flowId);
const fold = () => db.run(foldFlows({ limit: 1000 }));
const hoursAgo = (flowId: string, hours: number) =>
  queue.query("update sluice.flow set changed_at = now() - make_interval(hours => $2) where id = $1", [
    ...[flowId, hours],
  ]);

test("a new flow has changed just now, and the longest idle one comes first", async () => {
  const first = await jobs.flow({ ref: "a" });
  const second = await jobs.flow({ ref: "b" });
  expect(Date.now() - ((await idle())[0]?.since.getTime() ?? 0)).toBeLessThan(10_000);
  await hoursAgo(first.flowId, 2);
  await hoursAgo(second.flowId, 3);
  expect(await idsOf()).toEqual([second.flowId, first.flowId]);
});

test("a move of one of its jobs counts as progress from the next fold on", async () => {
  const { flowId } = await jobs.flow({ ref: "a" }, { ref: "b", after: ["a"] });
  await hoursAgo(flowId, 2);
  expect(await fold()).toBe(0);
  expect(Date.now() - ((await idle())[0]?.since.getTime() ?? 0)).toBeGreaterThan(3_600_000);
  await jobs.claim();
  expect(await fold()).toBe(1);
  expect(Date.now() - ((await idle())[0]?.since.getTime() ?? 0)).toBeLessThan(10_000);
});

test("a flow that has ended is not idle, and a dead job of it that is replayed makes it run again", async () => {
  const { flowId, ids } = await jobs.flow({ ref: "a" }, { ref: "b" });
  const held = await jobs.claim();
  const outcomes = held.map(({ name }) =>
    name === "a" ? ({ outcome: "bury", message: "no use" } as const) : complete,
  );
  await jobs.settle(held, outcomes);
  await fold();
  expect(await idsOf()).toEqual([]);
  await jobs.replay(ids.a);
  await fold();
  expect(await idsOf()).toEqual([flowId]);
});

/** Flows that run and flows that have ended, 20,000 of each. */
const manyFlows = `
  insert into sluice.flow (id, last_id, total, pending, completed, changed_at)
  select sluice.new_id(), sluice.new_id(), 1, n % 2, 1 - n % 2, now() - n * interval '1 second'
  from generate_series(1, 40000) as n`;

test("among many flows the look reads as many rows as it answers", async () => {
  await queue.query(manyFlows);
  expect(await idle()).toHaveLength(100);
  await inSession(db.pool, async (client) => {
    const { take } = await watchStatements(client);
    await client.query("set enable_seqscan = off");
    await client.query("select sluice.idle_flows()");
    take();
    const { buffers } = await measure(client, "select sluice.idle_flows()");
    expect(scansOf(take())).toEqual([{ relation: "flow", index: "flow_running" }]);
    expect(buffers).toBeLessThan(120);
  });
});
