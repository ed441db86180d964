// A failed attempt writes one line to the log, and its error, stack and causes to the job.
import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { FatalError } from "../../src/core/errors.ts";
import { claim, listJobs } from "../../src/core/sql/index.ts";
import { defineJob } from "../../src/jobs/define.ts";
import { drainQueue } from "../../src/queue/drain/drain.ts";
import { enqueue } from "../../src/queue/enqueue.ts";
import { bringForward } from "../model/gate/gate-time.ts";
import { newJob } from "../support/jobs.ts";
import { createTestPorts, lookAt, roomyBudget } from "../support/ports.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const any = z.object({});
const ports = createTestPorts(db, [
  defineJob("broken", {
    payload: any,
    run: () => {
      throw new Error("mail not sent", { cause: new Error("SMTP 550", { cause: "no such box" }) });
    },
  }),
  defineJob("several", {
    payload: any,
    run: () => Promise.reject(new AggregateError([new Error("one"), new TypeError("two")], "both")),
  }),
  defineJob("endless", {
    payload: any,
    run: () => {
      const error = new Error("x".repeat(50_000));
      error.cause = error;
      for (let n = 0, last: Error = error; n < 20; n++) {
        last.cause = new Error("y".repeat(50_000));
        last = last.cause as Error;
      }
      throw error;
    },
  }),
  defineJob("text", { payload: any, run: () => Promise.reject("just words") }),
  defineJob("fatal", { payload: any, run: () => Promise.reject(new FatalError("never")) }),
  defineJob("talks", { payload: any, run: (_, { log }) => log.info("mail sent", { to: "a", type: "b" }) }),
]);

beforeEach(async () => {
  await emptyQueue(db.pool);
  ports.events.length = 0;
});

async function fail(type: string, fields = {}) {
  const { id } = await enqueue(ports, newJob({ type, ...fields }));
  await drainQueue(ports, { queue: "default", budget: roomyBudget });
  return lookAt(db, id);
}

describe("the log", () => {
  test("has one line for each failed attempt, with the job's new status", async () => {
    const { id } = await fail("broken", { maxAttempts: 2 });
    const line = {
      job_id: id,
      type: "broken",
      queue: "default",
      max_attempts: 2,
      message: "mail not sent",
      ms: expect.any(Number),
    };
    expect(ports.events).toEqual([
      { level: "warn", event: "attempt failed", fields: { ...line, attempt: 1, status: "pending" } },
    ]);
    await bringForward(db.pool);
    await drainQueue(ports, { queue: "default", budget: roomyBudget });
    expect(ports.events.slice(1)).toEqual([
      { level: "error", event: "attempt failed", fields: { ...line, attempt: 2, status: "dead" } },
    ]);
  });

  test("of a handler has the job's id, type and attempt", async () => {
    const { id } = await fail("talks");
    const fields = { to: "a", job_id: id, type: "talks", attempt: 1 };
    expect(ports.events).toEqual([{ level: "info", event: "mail sent", fields }]);
  });
});

describe("the job", () => {
  test("keeps the stack of its error and the error's causes", async () => {
    const { errors } = await fail("broken");
    expect(errors).toMatchObject([
      {
        attempt: 1,
        started_at: expect.any(String),
        message: "mail not sent",
        stack: expect.stringContaining("failures.test.ts"),
        causes: [
          { message: "SMTP 550", stack: expect.stringContaining("failures.test.ts") },
          { message: "no such box", stack: null },
        ],
      },
    ]);
  });

  test("keeps each error of an AggregateError", async () => {
    const [error] = (await fail("several")).errors;
    expect(error?.causes?.map(({ message }) => message)).toEqual(["one", "two"]);
  });

  test("keeps a bounded length of message and stack", async () => {
    const { id } = await fail("endless");
    const { rows } = await db.pool.query(
      "select length(message) as message, length(detail::text) as detail from sluice.failed_attempt where id = $1",
      [id],
    );
    expect(rows[0]?.message).toBe(4000);
    expect(rows[0]?.detail).toBeLessThan(8500);
  });

  test.each([
    ["text", "just words", null],
    ["fatal", "never", expect.stringContaining("FatalError")],
  ])(
    "that throws a %s error keeps its message, and its stack if there is one",
    async (type, message, stack) => {
      expect((await fail(type)).errors).toMatchObject([{ message, stack, causes: [] }]);
    },
  );

  test("has no stacks in lists and claims", async () => {
    await fail("broken");
    const plain = { attempt: 1, at: expect.any(String), message: "mail not sent" };
    const [listed] = (await db.run(listJobs({ limit: 10 }))).jobs;
    expect(listed?.errors).toEqual([plain]);
    await bringForward(db.pool);
    const claimed = await db.run(claim({ queue: "default", types: ["broken"], limit: 1, leaseSeconds: 60 }));
    expect(claimed.jobs[0]?.errors).toEqual([plain]);
  });
});
