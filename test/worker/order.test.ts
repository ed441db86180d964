// Keys over HTTP: jobs with a partition key run in order, jobs with a fair key share, by the rules of their queue.
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { enqueueResponse, listResponse } from "../../src/contract/jobs.ts";
import { claimResponse } from "../../src/contract/work.ts";
import { defineJob, definePulledJob, defineQueue, FatalError } from "../../src/index.ts";
import deployed from "../../src/worker.ts";
import { bindings, useDeployment } from "./deployment.ts";

const started: string[] = [];
const deployment = useDeployment(
  [
    definePulledJob("print", { payload: z.object({}) }),
    defineJob("step", {
      payload: z.object({ name: z.string(), dies: z.boolean().default(false) }),
      timeoutSeconds: 5,
      run: ({ name, dies }) => {
        started.push(name);
        if (dies) throw new FatalError("never");
      },
    }),
  ],
  {},
  [
    defineQueue("passing", { partitions: { onDead: "pass" } }),
    defineQueue("sharing", { shares: { concurrency: 2 } }),
  ],
);
const { call, enqueue, look, query } = deployment;
const post = (path: string, body: object) => call(path, { method: "POST", body: JSON.stringify(body) });

async function claim(fields: object) {
  const response = await post("/v1/claims", { worker_id: "w1", ...fields });
  return claimResponse.parse(await response.json()).jobs;
}

describe("a job shows", () => {
  test("its partition key and the bucket of it, which is the same for the same key", async () => {
    const ids = await Promise.all(
      ["a", "a", "b"].map((key) => enqueue({ type: "print", partition_key: key })),
    );
    const [one, two, other] = await Promise.all(ids.map(look));
    expect(one).toMatchObject({ partition_key: "a", fair_key: null });
    expect(one?.partition_bucket).toBe(two?.partition_bucket);
    expect(one?.partition_bucket).not.toBe(other?.partition_bucket);
  });

  test("its fair key, alone, in lists and in claims", async () => {
    const id = await enqueue({ type: "print", fair_key: "t" });
    const shown = { fair_key: "t", partition_key: null };
    expect(await look(id)).toMatchObject({ ...shown, partition_bucket: null });
    const { jobs } = listResponse.parse(await (await call("/v1/jobs")).json());
    expect(jobs).toMatchObject([{ ...shown, partition_bucket: null }]);
    expect(await claim({})).toMatchObject([shown]);
  });
});

describe("when a job of a partition key dies", () => {
  const steps = (queue: string) =>
    ["one", "two"].map((name) => ({
      type: "step",
      queue,
      partition_key: "k",
      payload: { name, dies: name === "one" },
    }));

  test.each([
    ["default", "pending"],
    ["passing", "completed"],
  ])("in the queue %s, the next one is %s", async (queue, status) => {
    started.length = 0;
    const response = await post("/v1/jobs/batch", { jobs: steps(queue) });
    const { jobs } = z.object({ jobs: z.array(enqueueResponse) }).parse(await response.json());
    await deployment.quiet(); // the drain that the enqueue started has ended
    expect(await look(jobs[0]?.job_id ?? "")).toMatchObject({ status: "dead" });
    expect(await look(jobs[1]?.job_id ?? "")).toMatchObject({ status });
    expect(started).toEqual(status === "completed" ? ["one", "two"] : ["one"]);
  });
});

describe("a puller", () => {
  test("gets one job of a partition key at a time", async () => {
    for (let n = 0; n < 2; n++) await enqueue({ type: "print", partition_key: "k" });
    const [first, ...others] = await claim({ limit: 10 });
    expect(others).toEqual([]);
    expect(await claim({ limit: 10 })).toEqual([]);
    await post(`/v1/jobs/${first?.job_id}/complete`, { lease: first?.lease });
    expect(await claim({ limit: 10 })).toHaveLength(1);
  });

  test("gets no more jobs of a fair key than its queue allows", async () => {
    const jobs = Array.from({ length: 5 }, () => ({ type: "print", queue: "sharing", fair_key: "t" }));
    await post("/v1/jobs/batch", { jobs });
    expect(await claim({ queue: "sharing", limit: 10 })).toHaveLength(2);
    expect(await claim({ queue: "sharing", limit: 10 })).toEqual([]);
  });
});

test("the Worker of this repository has the queues ordered, ordered_pass and fair", async () => {
  const env = { ...bindings, DATABASE_URL: deployment.databaseUrl };
  const headers = {
    authorization: "Bearer sk_the_key_of_the_worker_tests",
    "content-type": "application/json",
  };
  for (const queue of ["ordered", "ordered_pass", "fair"]) {
    // Without a drain of this file's deployment, which has other rules.
    await query("select sluice.enqueue('print', '{}', $1, partition_key => 'k')", [queue]);
    const body = JSON.stringify({ worker_id: "w1", queue, types: ["print"] });
    const request = new Request("https://sluice.example/v1/claims", { method: "POST", headers, body });
    const response = await deployed.fetch(request, env, { waitUntil() {} });
    expect(await response.json()).toMatchObject({ jobs: [{ queue }] });
  }
  // A queue that has the defaults needs no row.
  expect(await query("select queue, blocks, concurrency from sluice.key_policy order by queue")).toEqual([
    { queue: "fair", blocks: true, concurrency: 4 },
    { queue: "ordered_pass", blocks: false, concurrency: null },
  ]);
});
