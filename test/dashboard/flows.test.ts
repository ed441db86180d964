// Flows: the graph, the waterfall and what is said when a flow is too large for a graph.
import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { claimResponse } from "../../src/contract/work.ts";
import { adminCallsOf } from "../worker/admin-calls.ts";
import { useDeployment } from "../worker/deployment.ts";
import { note } from "./one-of-each.ts";
import { signedIn, type Visitor } from "./visitor.ts";

const deployment = useDeployment([note]);
const { ask, send } = adminCallsOf(deployment);
let viewer: Visitor;
beforeEach(async () => {
  viewer = await signedIn(deployment, "viewer");
});

const job = (ref: string, after?: string[]) => ({
  ...{ ref, type: "note", payload: { text: ref }, ...(after && { after }) },
});
async function start(jobs: object[]): Promise<string> {
  const response = await send("POST /v1/flows", { body: { jobs } });
  return z.object({ flow_id: z.string() }).parse(await response.json()).flow_id;
}
const linesOf = (text: string) => text.match(/<path class="edge[^"]*"/g) ?? [];
const boxesOf = (text: string) => text.match(/<rect class="box[^"]*"/g) ?? [];

test("without flows the page says how to start one", async () => {
  expect(await viewer.page("/flows")).toContain("/v1/flows -d");
});

test("the list is narrowed by state, and says so if none is left", async () => {
  await start([job("a"), job("b", ["a"])]);
  expect(await viewer.page("/flows?status=running")).toContain("0 of 2");
  const none = await viewer.page("/flows?status=dead");
  expect(none).toContain("No flow is dead");
  expect(none).toContain('href="/flows"'); // the chip that is on takes the filter away
  expect(await viewer.page("/flows?status=nonsense")).toContain("0 of 2");
});

describe("the graph", () => {
  test("has a box for each job and a line for each wait, dashed until the job before has completed", async () => {
    const flow = await start([job("a"), job("b", ["a"]), job("c", ["a", "b"])]);
    const before = await viewer.page(`/flows/${flow}`);
    expect(boxesOf(before)).toHaveLength(3);
    expect(linesOf(before)).toEqual(Array(3).fill('<path class="edge is-wait"'));
    expect(before).toContain("blocked, needs 2");
    const { jobs } = await ask("POST /v1/claims", claimResponse, {
      worker_id: "w",
      types: ["note"],
      limit: 1,
    });
    await send(`POST /v1/jobs/${jobs[0]?.job_id}/complete`, { body: { lease: jobs[0]?.lease } });
    await deployment.fire("*/2 * * * *");
    const after = await viewer.page(`/flows/${flow}`);
    expect(linesOf(after).toSorted()).toEqual([
      '<path class="edge is-wait"',
      ...Array(2).fill('<path class="edge"'),
    ]);
    expect(after).toContain("1 of 3 completed");
  });

  test("draws many jobs that look the same as one box", async () => {
    const parts = Array.from({ length: 20 }, (_, n) => job(`part-${n}`, ["first"]));
    const flow = await start([
      job("first"),
      ...parts,
      job(
        "last",
        parts.map(({ ref }) => ref),
      ),
    ]);
    const text = await viewer.page(`/flows/${flow}`);
    expect(boxesOf(text)).toHaveLength(3);
    expect(text).toContain("20 × note");
    expect(text.match(/class="fall"/g)).toHaveLength(22);
  });

  test("is left out above 200 jobs: the page says so, and the table has pages", async () => {
    const flow = await start(Array.from({ length: 230 }, (_, n) => job(`n${n}`)));
    const first = await viewer.page(`/flows/${flow}`);
    expect(boxesOf(first)).toHaveLength(0);
    expect(first).toContain("The graph is drawn for flows of at most 200 jobs. This one has 230");
    expect(first.match(/class="fall"/g)).toHaveLength(200);
    const next = /href="([^"]+)" rel="next"/.exec(first)?.[1] ?? "";
    expect((await viewer.page(next)).match(/class="fall"/g)).toHaveLength(30);
  });
});

test("the waterfall shows failed attempts", async () => {
  const flow = await start([job("a")]);
  const { jobs } = await ask("POST /v1/claims", claimResponse, { worker_id: "w", types: ["note"], limit: 1 });
  await send(`POST /v1/jobs/${jobs[0]?.job_id}/fail`, { body: { lease: jobs[0]?.lease, error: "no paper" } });
  const text = await viewer.page(`/flows/${flow}`);
  expect(text).toContain("1 attempt, 1 failed");
  expect(text).toMatch(/<rect class="k-dead" x="[\d.]+%"/);
});

test.each(["x", "01900000-0000-7000-8000-000000000000"])(
  "a flow that is not there (%s) is a 404",
  async (id) => {
    expect((await viewer.get(`/flows/${id}`)).status).toBe(404);
  },
);
