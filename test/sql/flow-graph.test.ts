// The graph of a flow: its jobs with what they wait for, in and outside of the flow, and without payloads.
import { beforeEach, expect, test } from "vitest";
import { flowGraph } from "../../src/core/sql/index.ts";
import { compile } from "../../src/core/sql/statement.ts";
import { flowJobsOf, named } from "../support/flow-jobs.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { times } from "../support/verbs.ts";

const db = useTestDatabase();
const jobs = flowJobsOf(db.pool);
beforeEach(() => emptyQueue(db.pool));

async function graph(id: string, page: { after?: string; limit?: number; hiddenTypes?: string[] } = {}) {
  const statement = flowGraph(id, { limit: 100, hiddenTypes: [], ...page });
  const { text, values } = compile(statement);
  return statement.decode((await db.pool.query(text, values)).rows);
}

test("names the blockers of the flow, and counts those outside of it", async () => {
  const outside = await jobs.add("outside");
  const { ids, flowId } = await jobs.flow(
    { ref: "a" },
    { ref: "b", after: ["a"] },
    { ref: "c", after: { parts: ["a", "b"], other: [{ job_id: outside }] } },
  );
  expect(await graph(flowId)).toMatchObject([
    { id: ids.a, status: "pending", blockers: [], outside: 0, failures: [], startedAt: null },
    { id: ids.b, status: "blocked", blockers: [ids.a], outside: 0 },
    { id: ids.c, status: "blocked", blockers: [ids.a, ids.b], outside: 1, endedAt: null },
  ]);
});

test("has the times of each attempt", async () => {
  const { flowId } = await jobs.flow({ ref: "a" }, { ref: "b" });
  const held = await jobs.claim();
  await jobs.settle([named(held, "a")], { outcome: "complete", output: null });
  await jobs.settle([named(held, "b")], { outcome: "retry", message: "no paper", retry_in_seconds: 60 });
  const [a, b] = await graph(flowId);
  expect(a).toMatchObject({ status: "completed", attempts: 1, failures: [] });
  expect(a?.endedAt?.getTime()).toBeGreaterThanOrEqual(a?.startedAt?.getTime() ?? Number.NaN);
  expect(b).toMatchObject({ status: "pending", attempts: 1, failures: [{ failedAt: expect.any(Date) }] });
});

test("has pages without gap and overlap, and nothing of a flow that is not there", async () => {
  const { ids, flowId } = await jobs.flow(...times(7, (n) => ({ ref: `n${n}` })));
  const first = await graph(flowId, { limit: 4 });
  const second = await graph(flowId, { limit: 4, after: first.at(-1)?.id ?? "" });
  expect([...first, ...second].map(({ id }) => id)).toEqual(Object.values(ids).toSorted());
  expect(await graph("01900000-0000-7000-8000-000000000000")).toEqual([]);
});
