// Whatever a handler returns or throws, its batch is settled, and only its own job fails.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { RetryableError, Snooze } from "../../src/core/errors.ts";
import { defineJob } from "../../src/jobs/define.ts";
import { defineBatchJob } from "../../src/jobs/define-batch.ts";
import { drainQueue } from "../../src/queue/drain/drain.ts";
import { enqueue } from "../../src/queue/enqueue.ts";
import { complete } from "../../src/sql/in-transaction.ts";
import { createCountingDatabase } from "../support/counting-database.ts";
import { newJob } from "../support/jobs.ts";
import { createTestPorts, lookAt, roomyBudget } from "../support/ports.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const counting = createCountingDatabase(db);
const cycle: { self?: object } = {};
cycle.self = cycle;
const nested = (depth: number): object => (depth === 0 ? {} : { in: nested(depth - 1) });

const outputs: Record<string, { output: () => unknown; says: string }> = {
  nul: { output: () => ({ a: "\0" }), says: '"a" is a text with a NUL character' },
  "NUL in a name": { output: () => ({ "\0": 1 }), says: "a name has a NUL character" },
  "half a surrogate pair": { output: () => ["\ud800"], says: "half a surrogate pair" },
  bigint: { output: () => ({ n: 1n }), says: '"n" is a bigint' },
  cycle: { output: () => cycle, says: "circular" },
  "bad toJSON": {
    output: () => ({
      toJSON() {
        throw new Error("no JSON of me");
      },
    }),
    says: "no JSON of me",
  },
  function: { output: () => () => {}, says: "it is a function" },
  symbol: { output: () => Symbol("s"), says: "it is a symbol" },
  nan: { output: () => ({ ratio: Number.NaN }), says: '"ratio" is NaN' },
  infinity: { output: () => [1 / 0], says: "is Infinity" },
  deep: { output: () => nested(101), says: "nested deeper than 100 levels" },
  large: { output: () => "x".repeat(1024 * 1024), says: "are more than 1048576" },
};
const thrown: Record<string, () => unknown> = {
  "a NUL and half a surrogate pair": () => new Error("a\0b\udc00c"),
  "an object without toString": () => Object.create(null),
  "an error whose message throws": () =>
    Object.defineProperty(new Error(), "message", {
      get() {
        throw new Error("again");
      },
    }),
  "a long message": () => new Error("é".repeat(100_000)),
  "a snooze of NaN seconds": () => new Snooze(Number.NaN),
  "an infinite retry time": () => new RetryableError("late", { retryInSeconds: Number.POSITIVE_INFINITY }),
  "a snooze of 1e300 seconds": () => new Snooze(1e300),
};
const which = z.object({ which: z.string() });
const ports = createTestPorts(counting, [
  defineJob("own", {
    payload: z.object({}),
    run: async (_, context) => complete(db.pool, context, { by: "its handler" }),
  }),
  defineJob("echo", {
    payload: z.record(z.string(), z.json()),
    timeoutSeconds: 1,
    run: (payload) => payload as never,
  }),
  defineJob("returns", { payload: which, run: ({ which }) => outputs[which]?.output() as never }),
  defineJob("throws", { payload: which, run: ({ which }) => Promise.reject(thrown[which]?.()) }),
  defineBatchJob("answers", {
    payload: which,
    run: async (jobs) =>
      jobs.map(({ payload }) =>
        payload.which === "nothing" ? (null as never) : { output: outputs[payload.which]?.output() as never },
      ),
  }),
]);

beforeEach(() => emptyQueue(db.pool));
afterEach(() => ports.events.splice(0));

async function run(type: string, payload: Record<string, string>) {
  const neighbours = [
    await enqueue(ports, newJob({ payload: { a: 1 } })),
    await enqueue(ports, newJob({ payload: { b: 2 } })),
  ];
  const { id } = await enqueue(ports, newJob({ type, payload }));
  const report = await drainQueue(ports, { queue: "default", budget: roomyBudget });
  expect(report).toMatchObject({ claimed: 3, lost: 0, end: "empty" });
  for (const neighbour of neighbours) {
    expect(await lookAt(db, neighbour.id)).toMatchObject({ status: "completed", attempts: 1, errors: [] });
  }
  return lookAt(db, id);
}

describe("an output that cannot be stored makes its own job dead, and no other", () => {
  test.each(Object.keys(outputs))("%s", async (which) => {
    for (const type of ["returns", "answers"]) {
      const job = await run(type, { which });
      expect(job).toMatchObject({ status: "dead", deadReason: "fatal", attempts: 1 });
      expect(job.errors[0]?.message).toContain("the output cannot be kept: ");
      expect(job.errors[0]?.message).toContain(outputs[which]?.says);
      await emptyQueue(db.pool);
    }
  });

  test("a null in a batch handler's answer is a failed attempt of that job", async () => {
    expect(await run("answers", { which: "nothing" })).toMatchObject({ status: "pending", attempts: 1 });
  });

  test("an undefined field is left out as in JSON, and an undefined output is null", async () => {
    outputs.holey = { output: () => ({ a: undefined, b: 1 }), says: "" };
    outputs.none = { output: () => undefined, says: "" };
    expect(await run("returns", { which: "holey" })).toMatchObject({ output: { b: 1 } });
    await emptyQueue(db.pool);
    expect(await run("returns", { which: "none" })).toMatchObject({ status: "completed", output: null });
  });
});

describe("a handler's error is stored", () => {
  test.each(Object.keys(thrown))("%s", async (which) => {
    const job = await run("throws", { which });
    expect(job.status).toBe("pending");
    if (which === "a snooze of 1e300 seconds") {
      expect(job).toMatchObject({ attempts: 0, errors: [] });
      return;
    }
    expect(job).toMatchObject({ attempts: 1, errors: [{ message: expect.any(String) }] });
    expect(job.errors[0]?.message.length).toBeLessThanOrEqual(4000);
  });

  test("with a replacement for each character that cannot be stored", async () => {
    const job = await run("throws", { which: "a NUL and half a surrogate pair" });
    expect(job.errors[0]?.message).toBe("a\uFFFDb\uFFFDc");
  });
});

describe("an outcome that the database refuses", () => {
  const refuse = (table: string, check: string) =>
    db.pool.query(`alter table sluice.${table} add constraint refusal check (${check})`);
  const accept = (table: string) =>
    db.pool.query(`alter table sluice.${table} drop constraint if exists refusal`);
  afterEach(async () => {
    await accept("output");
    await accept("failed_attempt");
  });
  const refusals = () => ports.events.filter(({ event }) => event === "outcome refused");

  test("is a failed attempt of its job, and the rest of the batch is settled", async () => {
    await refuse("output", `output::text not like '%bad%'`);
    const job = await run("echo", { text: "bad" });
    expect(job).toMatchObject({ status: "pending", attempts: 1 });
    expect(job.errors[0]?.message).toMatch(/^its outcome was refused: .*violates check constraint/);
  });

  test("leaves its job alone to its lease if the failure is refused too", async () => {
    await refuse("output", `output::text not like '%bad%'`);
    await refuse("failed_attempt", "message not like 'its outcome%'");
    const jobs = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        enqueue(ports, newJob({ payload: { n, text: n === 7 ? "bad" : "good" } })),
      ),
    );
    const report = await drainQueue(ports, { queue: "default", budget: roomyBudget });
    expect(report).toMatchObject({ completed: 19, lost: 1 });
    expect(refusals()).toMatchObject([{ fields: { job_id: jobs[7]?.id } }]);
    expect(await lookAt(db, jobs[7]?.id ?? "")).toMatchObject({ status: "processing", attempts: 1 });
  });

  test("does not end the drain when a claim carried it", async () => {
    await refuse("output", `output::text not like '%bad%'`);
    await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        enqueue(ports, newJob({ payload: { text: n === 3 ? "bad" : "good" } })),
      ),
    );
    const report = await drainQueue(ports, { queue: "default", budget: { ...roomyBudget, maxBatch: 10 } });
    expect(report).toMatchObject({ claimed: 30, completed: 29, failed: 1, lost: 0, end: "empty" });
  });

  test("costs a bounded number of statements when the database refuses all of them", async () => {
    await refuse("output", "false");
    await refuse("failed_attempt", "false");
    await Promise.all(Array.from({ length: 64 }, (_, n) => enqueue(ports, newJob({ payload: { n } }))));
    counting.takeCounts();
    const report = await drainQueue(ports, { queue: "default", budget: { ...roomyBudget, hardEndMs: 2000 } });
    expect(report).toMatchObject({ completed: 0, lost: 64, end: "error" });
    expect(counting.takeCounts().settle).toBeLessThan(100);
  });
});

test("a job that its handler has completed in a transaction of its own is completed, and nothing is logged", async () => {
  const ids = [
    await enqueue(ports, newJob({ type: "own", payload: {} })),
    await enqueue(ports, newJob({ payload: { n: 1 } })),
    await enqueue(ports, newJob({ type: "own", payload: {} })),
  ];
  const report = await drainQueue(ports, { queue: "default", budget: roomyBudget });
  expect(report).toMatchObject({ claimed: 3, completed: 3, lost: 0, end: "empty" });
  expect(ports.events).toEqual([]);
  expect(await lookAt(db, ids[0]?.id ?? "")).toMatchObject({
    status: "completed",
    output: { by: "its handler" },
  });
});
