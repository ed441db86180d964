// A user's test with sluice/test, in vitest.
import { enqueue } from "sluice/sql";
import { createTestQueue, runJob, type TestQueue } from "sluice/test";
import { afterAll, beforeAll, expect, test } from "vitest";
import { jobs, welcome, welcomeJob } from "./jobs.ts";

const env = { GREETING: "Hello" };
let queue: TestQueue;
beforeAll(async () => {
  queue = await createTestQueue({ jobs, env });
}, 60_000);
afterAll(() => queue.close());

test("one job", async () => {
  expect(await runJob(welcomeJob, { name: "a" }, { env })).toMatchObject({
    status: "completed",
    output: { text: "Hello a" },
  });
});

test("a delayed job, with the clock moved by hand", async () => {
  const id = await enqueue(queue, welcome, { name: "b" }, { delaySeconds: 3600 });
  expect(await queue.drain()).toEqual({ completed: 0, failed: 0, released: 0 });
  await queue.advance(3600);
  expect(await queue.drain()).toEqual({ completed: 1, failed: 0, released: 0 });
  expect(await queue.job(id)).toMatchObject({ status: "completed", output: { text: "Hello b" } });
});
