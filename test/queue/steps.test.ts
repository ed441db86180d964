// Durable steps in a drain: what is stored never runs again, and a handler that has to wait goes on in a later invocation.
import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { FatalError, RetryableError } from "../../src/core/errors.ts";
import type { Payload } from "../../src/core/job.ts";
import { cancel, reapLeases } from "../../src/core/sql/index.ts";
import { defineJob } from "../../src/jobs/define.ts";
import { defineBatchJob } from "../../src/jobs/define-batch.ts";
import { defineSignal } from "../../src/jobs/define-signal.ts";
import { drainQueue } from "../../src/queue/drain/drain.ts";
import { enqueue } from "../../src/queue/enqueue.ts";
import type { HandlerContext } from "../../src/queue/ports.ts";
import { bringForward } from "../model/gate/gate-time.ts";
import { createCountingDatabase } from "../support/counting-database.ts";
import { newJob } from "../support/jobs.ts";
import { createTestPorts, lookAt, roomyBudget } from "../support/ports.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const counting = createCountingDatabase(db);
const any = z.looseObject({});

/** How often each function ran. */
let ran: Record<string, number> = {};
const count = (name: string) => {
  ran[name] = (ran[name] ?? 0) + 1;
  return ran[name];
};
let handler: (context: HandlerContext, payload: Payload) => Promise<unknown>;
const work = {
  payload: any,
  backoff: { baseSeconds: 1, maxSeconds: 1, jitterSeconds: 0 },
  run: (payload: object, context: HandlerContext) => handler(context, payload as Payload) as never,
};
const render = defineJob("render", {
  payload: z.object({ page: z.number() }),
  timeoutSeconds: 5,
  run: ({ page }) => {
    count(`page ${page}`);
    if (page === 0) throw new FatalError("no such page");
    return { rows: page * 10 };
  },
});
const ports = createTestPorts(counting, [
  render,
  defineJob("durable", { ...work, timeoutSeconds: 5 }),
  defineJob("brief", { ...work, timeoutSeconds: 0.3 }),
  defineBatchJob("bulk", {
    payload: any,
    run: async (jobs) => jobs.map(({ context }) => ({ output: Object.keys(context.step) })),
  }),
]);

beforeEach(async () => {
  await emptyQueue(db.pool);
  ran = {};
  ports.registry.stepTypes.clear();
  ports.events.length = 0;
  counting.takeCounts();
});

const drain = (budget = roomyBudget) => drainQueue(ports, { queue: "default", budget });
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const names = async () =>
  (await db.pool.query<{ name: string }>("select name from sluice.checkpoint order by name")).rows.map(
    ({ name }) => name,
  );
async function start(type = "durable", fields = {}): Promise<string> {
  const { id } = await enqueue(ports, newJob({ type, ...fields }));
  return id;
}

describe("a stored step", () => {
  test("does not run again after a failed attempt, and one that failed does", async () => {
    handler = async ({ step, attempt }) => {
      const one = await step.run("one", () => ({ id: count("one"), at: new Date(0) }));
      const two = await step.run("two", () => {
        count("two");
        if (attempt === 1) throw new Error("not yet");
        return null;
      });
      return { one, two };
    };
    const id = await start();
    await drain();
    expect(await lookAt(db, id)).toMatchObject({ status: "pending", attempts: 1 });
    await bringForward(db.pool);
    await drain();
    expect(await lookAt(db, id)).toMatchObject({
      status: "completed",
      attempts: 2,
      output: { one: { id: 1, at: "1970-01-01T00:00:00.000Z" }, two: null },
    });
    expect(ran).toEqual({ one: 1, two: 2 });
  });

  test("is one round trip, and comes along with the claim once the type is known to use steps", async () => {
    handler = async ({ step }) => {
      for (let n = 0; n < 5; n++) await step.run(`step ${n}`, () => count("step"));
    };
    await start();
    await drain();
    expect(counting.takeCounts()).toEqual({
      enqueue: 1,
      claim: 1,
      settle: 1,
      "find steps": 1,
      checkpoint: 5,
    });
    await start();
    await drain();
    expect(counting.takeCounts()).toEqual({ enqueue: 1, claim: 1, settle: 1, checkpoint: 5 });
  });

  test("of steps side by side is stored with the others by one statement, whatever jobs they belong to", async () => {
    handler = async ({ step }) => {
      const values = await Promise.all([1, 2, 3].map((n) => step.run(`part ${n}`, async () => n)));
      return values.reduce((a, b) => a + b);
    };
    const ids = [await start(), await start()];
    await drain();
    expect(counting.takeCounts()).toMatchObject({ "find steps": 1, checkpoint: 1 });
    for (const id of ids) expect(await lookAt(db, id)).toMatchObject({ status: "completed", output: 6 });
  });

  test("has a number if its name was used before", async () => {
    handler = async ({ step, attempt }) => {
      const seen = [];
      for (let n = 0; n < 3; n++) seen.push(await step.run("page", () => count("page")));
      if (attempt === 1) throw new RetryableError("once more", { retryInSeconds: 0 });
      return seen;
    };
    const id = await start();
    await drain();
    await drain();
    expect(await names()).toEqual(["page", "page#2", "page#3"]);
    expect(await lookAt(db, id)).toMatchObject({ status: "completed", output: [1, 2, 3] });
  });

  test("is checked by the step's schema: what does not fit makes the job dead", async () => {
    handler = async ({ step, attempt }) => {
      if (attempt === 1) {
        await step.run("charge", () => "an older shape");
        throw new RetryableError("deployed meanwhile", { retryInSeconds: 0 });
      }
      return step.run("charge", () => ({ id: "new" }), { schema: z.object({ id: z.string() }) });
    };
    const id = await start();
    await drain();
    await drain();
    expect(await lookAt(db, id)).toMatchObject({ status: "dead", deadReason: "fatal" });
  });

  test("that cannot be kept makes the job dead", async () => {
    handler = ({ step }) => step.run("big", () => ({ n: 1n }));
    const id = await start();
    await drain();
    expect((await lookAt(db, id)).errors[0]?.message).toMatch(
      /the value of the step "big" cannot be kept: "n" is a bigint/,
    );
  });

  test("survives a database that is gone for a moment, and the function does not run again", async () => {
    handler = ({ step }) => step.run("one", () => count("one"));
    const id = await start();
    counting.failNext("checkpoint", 3);
    await drain();
    expect(await lookAt(db, id)).toMatchObject({ status: "completed", output: 1 });
  });

  test("that could not be stored fails the attempt, and the handler is not told", async () => {
    handler = async ({ step }) => {
      await step.run("one", () => count("one")).catch(() => count("caught"));
    };
    const id = await start();
    counting.failNext("checkpoint", 7);
    await drain();
    expect(ran).toEqual({ one: 1 });
    expect((await lookAt(db, id)).errors[0]?.message).toMatch(/the step "one" could not be stored/);
  });

  test("by nested steps is no trouble", async () => {
    handler = ({ step }) => step.run("outer", async () => (await step.run("inner", () => 1)) + 1);
    const id = await start();
    await drain();
    expect(await lookAt(db, id)).toMatchObject({ status: "completed", output: 2 });
    expect(await names()).toEqual(["inner", "outer"]);
  });
});

describe("a step with a time-out", () => {
  test("fails when it takes longer, and the handler can go on without it", async () => {
    handler = async ({ step }) => {
      const slow = step.run("slow", () => pause(5_000), { timeoutSeconds: 0.05 });
      return slow.catch((error) => step.run("instead", () => String(error)));
    };
    const id = await start();
    await drain();
    expect(await lookAt(db, id)).toMatchObject({
      status: "completed",
      output: 'RetryableError: the step "slow" timed out after 0.05 s',
    });
  });

  test("aborts the signal that its function gets", async () => {
    let reason: unknown;
    handler = async ({ step }) => {
      const body = ({ signal }: { signal: AbortSignal }) =>
        new Promise<void>(() => {
          signal.addEventListener("abort", () => {
            reason = signal.reason;
          });
        });
      await step.run("slow", body, { timeoutSeconds: 0.05 }).catch(() => {});
    };
    await start();
    await drain();
    expect(reason).toBeInstanceOf(RetryableError);
  });
});

describe("a sleep", () => {
  test("of a few seconds is slept in place, by the database's clock", async () => {
    handler = async ({ step }) => {
      await step.sleep("rest", 0.2);
      return count("end");
    };
    const id = await start();
    const startedMs = Date.now();
    await drain();
    expect(Date.now() - startedMs).toBeGreaterThan(180);
    expect(await lookAt(db, id)).toMatchObject({ status: "completed", attempts: 1 });
  });

  test("suspends the job without using an attempt, and is not slept again", async () => {
    handler = async ({ step }) => {
      count("handler");
      await step.run("before", () => count("before"));
      await step.sleep("rest", 3600);
      return step.run("after", () => count("after"));
    };
    const id = await start();
    await drain();
    const sleeping = await lookAt(db, id);
    expect(sleeping).toMatchObject({ status: "pending", attempts: 0, errors: [] });
    expect((sleeping.scheduledAt.getTime() - Date.now()) / 1000).toBeCloseTo(3600, -1);

    // It is claimed too early, for instance because somebody changed its time: it sleeps on.
    await bringForward(db.pool);
    await drain();
    expect((await lookAt(db, id)).status).toBe("pending");
    expect(ran).toEqual({ handler: 2, before: 1 });

    await db.pool.query("update sluice.checkpoint set value = '1' where name = 'sleep:rest'");
    await bringForward(db.pool);
    await drain();
    expect(await lookAt(db, id)).toMatchObject({ status: "completed", attempts: 1, output: 1 });
    expect(ran).toEqual({ handler: 3, before: 1, after: 1 });
  });

  test("waits for the steps beside it, and what they begin next", async () => {
    handler = async ({ step }) => {
      const chain = async () => {
        await step.run("a", () => pause(50).then(() => count("a")));
        await step.run("b", () => pause(50).then(() => count("b")));
      };
      await Promise.all([step.sleep("rest", 600), chain()]);
    };
    const id = await start();
    await drain();
    expect(await names()).toEqual(["a", "b", "sleep:rest"]);
    expect((await lookAt(db, id)).status).toBe("pending");
  });

  test("cannot be caught by the handler", async () => {
    handler = async ({ step }) => {
      try {
        await step.sleep("rest", 600);
      } catch {
        count("caught");
      } finally {
        count("finally");
      }
    };
    const id = await start();
    await drain();
    await pause(20);
    expect(ran).toEqual({});
    expect((await lookAt(db, id)).status).toBe("pending");
  });
});

describe("a handler with too little time left", () => {
  const small = { ...roomyBudget, claimForMs: 600, hardEndMs: 1000 };

  test("suspends and goes on in the next invocation, until all of its steps have run", async () => {
    const steps = 20;
    handler = async ({ step }) => {
      let sum = 0;
      for (let n = 1; n <= steps; n++)
        sum += await step.run(`step ${n}`, () => pause(100).then(() => count(`${n}`) && n));
      return sum;
    };
    const id = await start("brief");
    let invocations = 0;
    while ((await lookAt(db, id)).status === "pending" && invocations < 30) {
      await drain(small);
      invocations++;
    }
    // 2 s of work in invocations of 1 s, and a step begins only if its 0.3 s are left.
    expect(invocations).toBeGreaterThanOrEqual(3);
    expect(await lookAt(db, id)).toMatchObject({
      status: "completed",
      attempts: 1,
      errors: [],
      output: (steps * (steps + 1)) / 2,
    });
    expect(Object.values(ran)).toEqual(Array(steps).fill(1));
  });

  test("suspends too when the statements are used up", async () => {
    handler = async ({ step }) => {
      for (let n = 1; n <= 30; n++) await step.run(`step ${n}`, () => count(`${n}`));
    };
    const id = await start();
    let invocations = 0;
    while ((await lookAt(db, id)).status === "pending" && invocations < 30) {
      await drain({ ...roomyBudget, subrequests: 20 });
      invocations++;
    }
    expect(invocations).toBeGreaterThanOrEqual(2);
    expect(await lookAt(db, id)).toMatchObject({ status: "completed", attempts: 1 });
    expect(Object.values(ran)).toEqual(Array(30).fill(1));
  });

  test("whose first step needs more than there is uses up attempts, and is dead in the end", async () => {
    handler = ({ step }) => step.run("endless", () => pause(10_000));
    const id = await start("brief", { maxAttempts: 2 });
    for (let n = 0; n < 2; n++) {
      await bringForward(db.pool);
      await drain(small);
    }
    expect(await lookAt(db, id)).toMatchObject({ status: "dead", attempts: 2, deadReason: "exhausted" });
  });
});

describe("a wait for a signal", () => {
  const parcel = defineSignal("parcel", z.object({ tracking: z.string() }));
  const send = (key: string, payload: object) =>
    db.pool.query("select sluice.signal('parcel', $1, $2)", [key, JSON.stringify(payload)]);
  const waitFor = (options?: { timeoutSeconds?: number }) => {
    handler = async ({ step }) => {
      await step.run("before", () => count("before"));
      return step.waitFor(parcel, "order 1", options);
    };
  };

  test("gets one that was sent before", async () => {
    waitFor();
    await send("order 1", { tracking: "x" });
    const id = await start();
    await drain();
    expect(await lookAt(db, id)).toMatchObject({ status: "completed", output: { tracking: "x" } });
  });

  test("blocks the job until it is sent, and uses no attempt", async () => {
    waitFor({ timeoutSeconds: 3600 });
    const id = await start();
    await drain();
    expect(await lookAt(db, id)).toMatchObject({ status: "blocked", attempts: 0 });
    await drain();
    expect((await lookAt(db, id)).status).toBe("blocked");
    await send("another order", { tracking: "y" });
    await drain();
    expect((await lookAt(db, id)).status).toBe("blocked");
    await send("order 1", { tracking: "x" });
    await drain();
    expect(await lookAt(db, id)).toMatchObject({
      status: "completed",
      attempts: 1,
      output: { tracking: "x" },
    });
    expect(ran).toEqual({ before: 1 });
  });

  test("gets null when its time is over, and a signal that comes later changes nothing", async () => {
    handler = async ({ step, attempt }) => {
      const found = await step.waitFor(parcel, "order 1", { timeoutSeconds: 0.3 });
      if (attempt === 1) throw new RetryableError("once more", { retryInSeconds: 0 });
      return { found };
    };
    const id = await start();
    await drain();
    expect((await lookAt(db, id)).status).toBe("blocked");
    await pause(400);
    await drain();
    await send("order 1", { tracking: "late" });
    await drain();
    expect(await lookAt(db, id)).toMatchObject({ status: "completed", output: { found: null } });
  });

  test("checks the payload by the signal's schema", async () => {
    waitFor();
    await send("order 1", { tracking: 7 });
    const id = await start();
    await drain();
    expect(await lookAt(db, id)).toMatchObject({ status: "dead", deadReason: "fatal" });
  });
});

describe("children", () => {
  test("are enqueued once and waited for, and each says how it ended", async () => {
    handler = async ({ step, attempt }) => {
      const parts = await step.all("render", render, [{ page: 1 }, { page: 2 }, { page: 0 }]);
      if (attempt === 1) throw new RetryableError("once more", { retryInSeconds: 0 });
      return parts.map((part) => (part.status === "completed" ? part.output.rows : part.status));
    };
    const id = await start();
    await drain();
    for (let n = 0; n < 5; n++) await drain();
    expect(await lookAt(db, id)).toMatchObject({ status: "completed", output: [10, 20, "dead"] });
    expect(ran).toEqual({ "page 1": 1, "page 2": 1, "page 0": 1 });
    expect(await names()).toEqual(["all:render", "all:render:jobs"]);
  });

  test("none at all are no reason to wait", async () => {
    handler = async ({ step }) => step.all("render", render, []);
    const id = await start();
    await drain();
    expect(await lookAt(db, id)).toMatchObject({ status: "completed", output: [] });
  });
});

test("each step is shown with its beginning and its end", async () => {
  const packed = defineSignal("packed", z.object({}));
  handler = async ({ step }) => {
    await step.run("charge", () => pause(30));
    await step.sleep("night", 3_600);
    await step.waitFor(packed, "o1", { timeoutSeconds: 60 });
    await step.all("pages", render, [{ page: 1 }]);
  };
  const id = await start();
  const steps = async () => (await lookAt(db, id)).steps;
  await drain();
  const [charge, night] = await steps();
  expect(charge).toMatchObject({ name: "charge", kind: "run", startedAt: expect.any(Date) });
  const tookMs = Number(charge?.endedAt) - Number(charge?.startedAt);
  expect(tookMs).toBeGreaterThanOrEqual(29);
  expect(tookMs).toBeLessThan(5_000);
  expect(night).toMatchObject({ name: "sleep:night", kind: "sleep" });
  expect(Math.round((Number(night?.endedAt) - Number(night?.startedAt)) / 1_000)).toBe(3_600);

  await db.pool.query("update sluice.checkpoint set value = '1' where name like 'sleep:%'");
  await bringForward(db.pool);
  await drain();
  expect((await steps()).at(-1)).toEqual({
    ...{ name: "wait:packed:o1", kind: "wait", startedAt: expect.any(Date), endedAt: null },
  });
  await db.pool.query("select sluice.signal('packed', 'o1', '{}')");
  await drain();
  expect(await lookAt(db, id)).toMatchObject({ status: "completed" });
  const ended = await steps();
  expect(ended.map(({ name }) => name)).toEqual(["charge", "sleep:night", "wait:packed:o1", "all:pages"]);
  for (const { startedAt, endedAt } of ended.slice(2)) {
    expect(startedAt).toBeInstanceOf(Date);
    expect(Number(endedAt)).toBeGreaterThan(Number(startedAt));
  }
});

test("a step that was cut off uses up an attempt, and stored ones are kept", async () => {
  const cut = Promise.withResolvers<void>();
  let isCut = true;
  handler = async ({ step }) => {
    await step.run("one", () => count("one"));
    await step.run("two", async () => {
      count("two");
      if (!isCut) return;
      cut.resolve();
      await new Promise(() => {});
    });
  };
  const id = await start();
  const gone = drain();
  await cut.promise;
  isCut = false;
  await db.pool.query("update sluice.lease set deadline = now() - interval '1 second'");
  await db.run(reapLeases({ limit: 10 }));
  await bringForward(db.pool);
  await drain();
  expect(await lookAt(db, id)).toMatchObject({ status: "completed", attempts: 2 });
  expect(ran).toEqual({ one: 1, two: 2 });
  await gone;
});

test("a job that is cancelled stops at its next step", async () => {
  handler = async ({ step, jobId, signal }) => {
    await step.run("one", () => db.run(cancel(jobId, { running: true })).then(() => count("one")));
    count(signal.aborted ? "aborted" : "went on");
    await step.run("two", () => count("two"));
  };
  const id = await start();
  await drain();
  expect(ran).toEqual({ one: 1 });
  expect((await lookAt(db, id)).status).toBe("cancelled");
});

test("a worker that lost its lease stores nothing more and stops", async () => {
  let signal: AbortSignal | undefined;
  handler = async ({ step, signal: ofAttempt }) => {
    signal ??= ofAttempt;
    await step.run("one", async () => {
      await db.pool.query("update sluice.lease set deadline = now() - interval '1 second'");
      await db.run(reapLeases({ limit: 10 }));
    });
    await step.run("two", () => count("two"));
  };
  await start();
  await drain();
  expect(signal?.reason).toMatchObject({ name: "LeaseLostError" });
  expect(ran).toEqual({});
  expect(await names()).toEqual([]);
});

test("a batch handler has no durable steps", async () => {
  const id = await start("bulk");
  await drain();
  expect((await lookAt(db, id)).errors[0]?.message).toMatch(/is not defined by defineJob/);
});
