// Pages of flows by their status, exact while counts are not folded yet, and bounded however many there are.
import { beforeEach, expect, test } from "vitest";
import type { FlowStatus } from "../../src/core/flow.ts";
import { cancelFlow, foldFlows, listFlows } from "../../src/core/sql/index.ts";
import { bury, complete, flowJobsOf } from "../support/flow-jobs.ts";
import { rewriteFunction } from "../support/rewrite-function.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { times } from "../support/verbs.ts";

const db = useTestDatabase();
const jobs = flowJobsOf(db.pool);
beforeEach(() => emptyQueue(db.pool));

const page = (status?: FlowStatus, before?: string, limit = 10) =>
  db.run(listFlows({ status, before, limit }));
const idsOf = async (status?: FlowStatus) => (await page(status)).flows.map(({ flowId }) => flowId);

test.each([false, true])("finds the flows of each status (folded: %s)", async (isFolded) => {
  const [completed, dead] = [await jobs.flow({ ref: "a" }), await jobs.flow({ ref: "b" })];
  const held = await jobs.claim();
  await jobs.settle(
    held.filter(({ name }) => name === "a"),
    complete,
  );
  await jobs.settle(
    held.filter(({ name }) => name === "b"),
    bury,
  );
  const cancelled = await jobs.flow({ ref: "c" });
  await db.run(cancelFlow("ann", cancelled.flowId));
  const running = await jobs.flow({ ref: "d" });
  if (isFolded) await db.run(foldFlows({ limit: 1000 }));
  expect(await idsOf("completed")).toEqual([completed.flowId]);
  expect(await idsOf("dead")).toEqual([dead.flowId]);
  expect(await idsOf("cancelled")).toEqual([cancelled.flowId]);
  expect(await idsOf("running")).toEqual([running.flowId]);
  expect(await idsOf()).toEqual([running, cancelled, dead, completed].map(({ flowId }) => flowId));
  expect((await page("dead")).next).toBeNull();
});

test("has pages, each flow once", async () => {
  const ids: string[] = [];
  for (const ref of times(5, String)) ids.unshift((await jobs.flow({ ref })).flowId);
  const first = await page("running", undefined, 2);
  const second = await page("running", first.next ?? "", 2);
  const third = await page("running", second.next ?? "", 2);
  expect([first, second, third].flatMap(({ flows }) => flows.map(({ flowId }) => flowId))).toEqual(ids);
  expect(third.next).toBeNull();
});

test("stops after a bounded number of flows, and goes on from there", async () => {
  const [from, to] = ["c_looked constant int := 2000", "c_looked constant int := 2"];
  await rewriteFunction(db.pool, { name: "search_flows", from, to });
  const oldest = await jobs.flow({ ref: "a" });
  await jobs.settle(await jobs.claim(), bury);
  const newer = [await jobs.flow({ ref: "b" }), await jobs.flow({ ref: "c" })];
  const first = await page("dead");
  expect(first).toEqual({ flows: [], next: newer[0]?.flowId });
  expect((await page("dead", first.next ?? "")).flows).toMatchObject([{ flowId: oldest.flowId }]);
  await rewriteFunction(db.pool, { name: "search_flows", from: to, to: from });
});
