// sluice/test: what a user's test gets from one attempt of a job, and from a queue whose clock it moves.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { FatalError, RetryableError, Snooze } from "../../src/core/errors.ts";
import { defineJob, definePulledJob } from "../../src/jobs/define.ts";
import { definePushedJob } from "../../src/jobs/define-pushed.ts";
import { defineReconciledJob } from "../../src/jobs/define-reconciled.ts";
import { defineSignal } from "../../src/jobs/define-signal.ts";
import { defineType } from "../../src/jobs/define-type.ts";
import { enqueue, enqueueFlow, signal } from "../../src/sql/in-transaction.ts";
import { createTestQueue, runJob, type TestQueue } from "../../src/test-kit/test-kit.ts";
import { useTestDatabase } from "../support/test-database.ts";

const payload = z.object({ n: z.number().default(1) });
const twice = defineJob(
  defineType("twice", { payload, output: z.object({ twice: z.number(), from: z.string() }) }),
  { run: ({ n }, { env }) => ({ twice: 2 * n, from: (env as { NAME?: string }).NAME ?? "nobody" }) },
);
const packed = defineSignal("packed", z.object({ tracking: z.string() }));
const fails = (error: () => Error) =>
  defineJob("fails", {
    payload,
    maxAttempts: 3,
    backoff: { baseSeconds: 10, jitterSeconds: 5 },
    run: () => {
      throw error();
    },
  });

describe("runJob", () => {
  test("gives the output, with its type", async () => {
    const outcome = await runJob(twice, { n: 4 }, { env: { NAME: "a test" } });
    expect(outcome).toEqual({ status: "completed", output: { twice: 8, from: "a test" }, steps: {} });
    if (outcome.status === "completed")
      expectTypeOf(outcome.output).toEqualTypeOf<{ twice: number; from: string }>();
  });

  test("refuses a payload that does not fit, as an enqueue does", async () => {
    await expect(runJob(twice, { n: "4" } as never)).rejects.toThrow('invalid payload for the type "twice"');
  });

  test.each([
    { error: new Error("no"), attempt: 1, outcome: { status: "retried", message: "no", retryInSeconds: 10 } },
    { error: new Error("no"), attempt: 2, outcome: { status: "retried", retryInSeconds: 20 } },
    { error: new Error("no"), attempt: 3, outcome: { status: "dead", reason: "exhausted", message: "no" } },
    { error: new RetryableError("busy", { retryInSeconds: 7 }), attempt: 1, outcome: { retryInSeconds: 7 } },
    { error: new FatalError("never"), attempt: 1, outcome: { status: "dead", reason: "fatal" } },
    { error: new Snooze(90), attempt: 3, outcome: { status: "snoozed", seconds: 90 } },
  ])("tells what $error.name means in attempt $attempt", async ({ error, attempt, outcome }) => {
    expect(
      await runJob(
        fails(() => error),
        {},
        { attempt },
      ),
    ).toMatchObject(outcome);
  });

  test("gives a handler the outputs that it waited for, and shows what comes next", async () => {
    const sum = defineJob("sum", {
      payload,
      after: { parts: [twice] },
      run: (_, { outputs, again }) =>
        again({ n: outputs.parts.reduce((total, part) => total + part.twice, 0) }),
    });
    const parts = [
      { twice: 2, from: "" },
      { twice: 5, from: "" },
    ];
    expect(await runJob(sum, {}, { outputs: { parts } })).toMatchObject({
      status: "continued",
      next: { type: "sum", payload: { n: 7 } },
    });
  });

  test("keeps durable steps in memory, and goes on after a sleep", async () => {
    let paid = 0;
    const order = defineJob("order", {
      payload,
      run: async (_, { step }) => {
        const id = await step.run("pay", () => `payment ${++paid}`);
        await step.sleep("a day", 86_400);
        return id;
      },
    });
    const now = new Date("2030-01-01T00:00:00Z");
    const first = await runJob(order, {}, { now });
    expect(first).toMatchObject({ status: "snoozed", steps: { pay: "payment 1" } });
    const later = new Date(now.getTime() + 86_400_000);
    expect(await runJob(order, {}, { now: later, steps: first.steps })).toMatchObject({
      status: "completed",
      output: "payment 1",
    });
    expect(paid).toBe(1);
  });

  test("sends a pushed job to its endpoint, and runs a reconciled one", async () => {
    const server = createServer((_, response) => response.writeHead(410).end("gone"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const secret = `whsec_${Buffer.from("a secret of a test, 24 b").toString("base64")}` as const;
    const push = definePushedJob("push", { payload, url, secret });
    expect(await runJob(push, {})).toMatchObject({ status: "dead", message: expect.stringContaining("410") });
    server.close();
    const reconciled = defineReconciledJob("reconciled", {
      payload,
      observe: async (jobs) => jobs.map(() => "missing"),
      run: () => {},
    });
    expect(await runJob(reconciled, {})).toMatchObject({ status: "snoozed", seconds: 60 });
  });

  test("says what it cannot do", async () => {
    await expect(runJob(definePulledJob("pulled", { payload }), {})).rejects.toThrow("has no handler");
    const waits = defineJob("waits", { payload, run: (_, { step }) => step.waitFor(packed, "o1") });
    expect(await runJob(waits, {})).toMatchObject({
      message: expect.stringContaining("use createTestQueue"),
    });
  });
});

describe("createTestQueue", () => {
  const db = useTestDatabase();
  const failing = { left: 1 };
  const flaky = defineJob("flaky", {
    payload,
    backoff: { baseSeconds: 600, jitterSeconds: 100 },
    run: () => {
      if (failing.left-- > 0) throw new Error("not yet");
      return "done";
    },
  });
  const sum = defineJob("sum", {
    payload,
    after: { parts: [twice] },
    run: (_, { outputs }) => outputs.parts.length,
  });
  const waits = defineJob("waits", {
    payload,
    run: async (_, { step }) => {
      await step.sleep("first", 900);
      return (await step.waitFor(packed, "o1", { timeoutSeconds: 3600 })) ?? "too late";
    },
  });
  let queue: TestQueue;
  beforeAll(async () => {
    queue = await createTestQueue({
      databaseUrl: db.url,
      jobs: [twice, flaky, sum, waits],
      env: { NAME: "env" },
    });
  });
  afterAll(() => queue.close());

  test("drains what is due, and what becomes due by that", async () => {
    const { jobs } = await enqueueFlow(queue, (flow) => {
      const parts = [flow.add(twice, { n: 1 }), flow.add(twice, { n: 2 }, { queue: "other" })];
      return { part: parts[0], sum: flow.add(sum, {}, { after: { parts } }) };
    });
    expect(await queue.drain()).toEqual({ completed: 3, failed: 0, released: 0 });
    expect(await queue.job(jobs.sum)).toMatchObject({ status: "completed", output: 2 });
    expect(await queue.drain()).toEqual({ completed: 0, failed: 0, released: 0 });
  });

  test("a delayed job runs when the clock has come that far, and not before", async () => {
    const late = await enqueue(queue, twice, {}, { delaySeconds: 86_400 });
    const later = await enqueue(queue, twice, {}, { delaySeconds: 2 * 86_400 });
    await queue.drain();
    await queue.advance(86_399);
    expect(await queue.drain()).toMatchObject({ completed: 0 });
    await queue.advance(2);
    expect(await queue.drain()).toMatchObject({ completed: 1 });
    expect(await queue.job(late)).toMatchObject({ status: "completed" });
    expect(await queue.job(later)).toMatchObject({ status: "pending" });
    await queue.advance(86_400);
    expect(await queue.drain()).toMatchObject({ completed: 1 });
  });

  test("a failed job is retried after its backoff, without jitter", async () => {
    failing.left = 1;
    const id = await enqueue(queue, flaky, {});
    expect(await queue.drain()).toEqual({ completed: 0, failed: 1, released: 0 });
    await queue.advance(599);
    expect(await queue.drain()).toEqual({ completed: 0, failed: 0, released: 0 });
    await queue.advance(2);
    expect(await queue.drain()).toMatchObject({ completed: 1 });
    const { attempts, errors, output } = await queue.job(id);
    expect({ attempts, errors: errors.map(({ message }) => message), output }).toEqual({
      attempts: 2,
      errors: ["not yet"],
      output: "done",
    });
  });

  test("a job expires", async () => {
    const expiresAt = new Date(Date.now() + 3_600_000);
    const id = await enqueue(queue, twice, {}, { delaySeconds: 1800, expiresAt });
    await queue.advance(3700);
    await queue.drain();
    expect(await queue.job(id)).toMatchObject({ status: "dead", deadReason: "expired" });
  });

  test("a lease that nobody holds any more runs out", async () => {
    const id = await enqueue(queue, twice, {});
    await queue.query("select sluice.claim('default', array['twice'], 1, 300, 'a dead worker')");
    expect(await queue.job(id)).toMatchObject({ status: "processing" });
    await queue.advance(301);
    expect(await queue.drain()).toMatchObject({ completed: 0 }); // it comes back after a backoff
    await queue.advance(120);
    await queue.drain();
    expect(await queue.job(id)).toMatchObject({ status: "completed" });
  });

  test.each([
    { what: "gets its signal", send: true, output: { tracking: "t1" } },
    { what: "times out", send: false, output: "too late" },
  ])("a job that waits $what", async ({ send, output }) => {
    const id = await enqueue(queue, waits, {});
    expect(await queue.drain()).toMatchObject({ released: 1 });
    await queue.advance(901);
    expect(await queue.drain()).toMatchObject({ released: 1 });
    expect(await queue.job(id)).toMatchObject({ status: "blocked" });
    if (send) await signal(queue, "packed", "o1", { tracking: "t1" });
    else await queue.query("delete from sluice.signal");
    await queue.advance(send ? 60 : 3601);
    await queue.drain();
    expect(await queue.job(id)).toMatchObject({ status: "completed", output });
    await queue.query("delete from sluice.signal");
  });

  test("a throttle ends", async () => {
    const throttle = { key: "k", seconds: 600 };
    const first = await enqueue(queue, twice, {}, { throttle });
    expect(await enqueue(queue, twice, {}, { throttle })).toBe(first);
    await queue.drain();
    await queue.advance(601);
    expect(await enqueue(queue, twice, {}, { throttle })).not.toBe(first);
    await queue.drain();
  });

  test("the books balance after all this", async () => {
    const { rows } = await queue.query(
      "select sum(pending) as pending, sum(leased) as leased from sluice.books",
    );
    expect(rows[0]).toEqual({ pending: "0", leased: "0" });
  });

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])(
    "the clock does not move by %s",
    async (seconds) => {
      await expect(queue.advance(seconds)).rejects.toThrow(TypeError);
    },
  );

  test("a schema of its own keeps test files apart in one database", async () => {
    await expect(createTestQueue({ databaseUrl: db.url, schema: "a b", jobs: [] })).rejects.toThrow(
      "lower case",
    );
    const other = await createTestQueue({ databaseUrl: db.url, schema: "other_test", jobs: { twice } });
    const id = await enqueue(other, twice, {}, { schema: "other_test" });
    expect(await queue.drain()).toMatchObject({ completed: 0 });
    expect(await other.drain()).toMatchObject({ completed: 1 });
    expect(await other.job(id)).toMatchObject({ output: { from: "nobody" } });
    await other.close();
  });

  test("a database that does not exist is an error, and leaves nothing open", async () => {
    await expect(createTestQueue({ databaseUrl: `${db.url}_no`, jobs: [] })).rejects.toThrow(
      "there is no database",
    );
  });
});
