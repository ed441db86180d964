// A drain works the jobs of one partition key one after another, and other keys beside them. If a job of a run does not
// complete, the rest of the run goes back to the queue in order.
import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { FatalError, RetryableError, Snooze } from "../../src/core/errors.ts";
import { reapLeases } from "../../src/core/sql/index.ts";
import { defineJob } from "../../src/jobs/define.ts";
import { type BatchAnswer, defineBatchJob } from "../../src/jobs/define-batch.ts";
import { defineQueue } from "../../src/jobs/define-queue.ts";
import { drainQueue } from "../../src/queue/drain/drain.ts";
import { complete } from "../../src/sql/in-transaction.ts";
import { bringForward, expireLeases } from "../model/gate/gate-time.ts";
import { createCountingDatabase } from "../support/counting-database.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { createTestPorts, lookAt, roomyBudget } from "../support/ports.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const counting = createCountingDatabase(db);
const queue = verbsOf(db);
const patience = { timeout: 10_000 };

const seen = {
  /** The names of jobs in the order in which their handlers started. */
  started: [] as string[],
  batches: [] as string[][],
  /** Keys that a handler works on now, and the most at one time. */
  busy: new Set<string>(),
  mostBusy: 0,
  /** Two handlers worked on one key at once. */
  clashes: 0,
  gates: [] as (() => void)[],
  aborted: [] as unknown[],
};
/** A job named "a1" belongs to the key "a". `ends` says how its first attempt ends, if it does not just complete. */
const payload = z.object({ name: z.string(), ends: z.string().optional() });
const failures: Record<string, () => Error> = {
  retry: () => new RetryableError("busy", { retryInSeconds: 60 }),
  snooze: () => new Snooze(60),
  fatal: () => new FatalError("never"),
};

async function work(name: string, during: () => Promise<unknown> = async () => {}): Promise<void> {
  const key = name.charAt(0);
  if (seen.busy.has(key)) seen.clashes++;
  seen.busy.add(key);
  seen.mostBusy = Math.max(seen.mostBusy, seen.busy.size);
  seen.started.push(name);
  await during();
  seen.busy.delete(key);
}

const gated = defineJob("gated", {
  payload,
  run: ({ name, ends }, { signal }) =>
    work(name, async () => {
      if (ends === "at once") return;
      const opened = Promise.withResolvers<void>();
      seen.gates.push(opened.resolve);
      signal.addEventListener("abort", () => seen.aborted.push(signal.reason));
      await opened.promise;
    }),
});
const clock = createManualClock();
const ports = createTestPorts(
  counting,
  [
    defineJob("note", {
      payload,
      run: async ({ name, ends }) => {
        const isFirst = !seen.started.includes(name);
        await work(name, () => new Promise((resolve) => setImmediate(resolve)));
        const failure = failures[ends ?? ""];
        if (failure && isFirst) throw failure();
      },
    }),
    gated,
    // Shorter than a deployment may set it, so that the test sees the lease being extended.
    { ...gated, type: "brief", leaseSeconds: 1.5 },
    defineJob("slow", {
      payload,
      timeoutSeconds: 10,
      run: ({ name }) => work(name, async () => clock.advance(4_000)),
    }),
    defineJob("careful", {
      payload,
      run: async ({ name }, context) => {
        seen.started.push(name);
        await complete(db.pool, context);
        throw new Error("failed after its job was completed");
      },
    }),
    defineBatchJob("bulk", {
      payload,
      run: async (jobs) => {
        seen.batches.push(jobs.map(({ payload: { name } }) => name).toSorted());
        return jobs.map(
          ({ payload: { ends } }): BatchAnswer => (ends ? { error: new FatalError("never") } : {}),
        );
      },
    }),
  ],
  [
    defineQueue("short", { partitions: { maxRun: 5 } }),
    defineQueue("passing", { partitions: { onDead: "pass" } }),
    defineQueue("shared", { shares: { concurrency: 2 } }),
  ],
);
const drain = (name = "default", budget = roomyBudget) => drainQueue(ports, { queue: name, budget });

beforeEach(async () => {
  await emptyQueue(db.pool);
  ports.events.length = 0;
  Object.assign(seen, { started: [], batches: [], mostBusy: 0, clashes: 0, gates: [], aborted: [] });
  seen.busy.clear();
  counting.takeCounts();
});

/** Enqueues jobs in this order. The first letter of a name is the job's partition key. */
async function enqueueKeyed(names: readonly string[], fields = {}, ends: Record<string, string> = {}) {
  const ids = await queue.enqueue(
    ...names.map((name) => ({
      type: "note",
      payload: { name, ...(ends[name] ? { ends: ends[name] } : {}) },
      partitionKey: name.charAt(0),
      ...fields,
    })),
  );
  return Object.fromEntries(names.map((name, index) => [name, ids[index]?.id ?? ""]));
}
const series = (key: string, count: number) => times(count, (n) => `${key}${n}`);
const startedOf = (key: string) => seen.started.filter((name) => name.startsWith(key));
async function statuses(ids: Record<string, string>) {
  const jobs = await Promise.all(
    Object.entries(ids).map(async ([name, id]) => [name, await lookAt(db, id)] as const),
  );
  return Object.fromEntries(jobs.map(([name, { status, attempts }]) => [name, `${status} ${attempts}`]));
}

describe("a drain", () => {
  test("runs the jobs of a key one after another in order, and several keys at once", async () => {
    const keys = ["a", "b", "c"];
    await enqueueKeyed(times(60, (n) => `${keys[n % 3]}${Math.floor(n / 3)}`));
    expect(await drain()).toMatchObject({ completed: 60, lost: 0, end: "empty" });
    for (const key of keys) expect(startedOf(key)).toEqual(series(key, 20));
    expect(seen).toMatchObject({ clashes: 0, mostBusy: 3 });
  });

  test("runs the jobs of a key in order, whatever their priorities are", async () => {
    const names = series("a", 9);
    await queue.enqueue(
      ...names.map((name, n) => ({
        type: "note",
        payload: { name },
        partitionKey: "a",
        priority: 3 + (n % 3),
      })),
    );
    expect(await drain()).toMatchObject({ completed: 9 });
    expect(seen.started).toEqual(names);
  });

  test("takes many jobs of a key with one claim", async () => {
    await enqueueKeyed(series("a", 100));
    counting.takeCounts();
    expect(await drain()).toMatchObject({ completed: 100, end: "empty" });
    expect(counting.takeCounts().claim).toBe(2);
    expect(seen.started).toEqual(series("a", 100));
  });

  test("takes no more of a key at once than its queue allows, and goes on until the key is empty", async () => {
    await enqueueKeyed(series("a", 20), { queue: "short" });
    counting.takeCounts();
    expect(await drain("short")).toMatchObject({ claimed: 20, completed: 20, end: "empty" });
    expect(counting.takeCounts().claim).toBe(5);
  });

  test("runs a batch type with the first job of each key, then with the next ones", async () => {
    const names = ["a0", "a1", "a2", "b0", "b1", "b2"];
    const ids = await enqueueKeyed(names, { type: "bulk" }, { b1: "fatal" });
    await queue.enqueue({ type: "bulk", payload: { name: "plain" } });
    expect(await drain()).toMatchObject({ claimed: 7, completed: 5, failed: 1, released: 1 });
    expect(seen.batches).toEqual([["a0", "b0", "plain"], ["a1", "b1"], ["a2"]]);
    expect(await statuses(ids)).toMatchObject({ a2: "completed 1", b1: "dead 1", b2: "pending 0" });
  });

  test("goes on while a share of its own jobs has more, and keeps to the share's limit", async () => {
    const jobs = times(6, (n) => ({
      type: "gated",
      queue: "shared",
      fairKey: "t",
      payload: { name: `${n}` },
    }));
    await queue.enqueue(...jobs);
    let saidClaimed = 0;
    const ended = drainQueue(ports, { queue: "shared", budget: roomyBudget, onClaimed: () => saidClaimed++ });
    for (const count of [2, 4, 6]) {
      await expect.poll(() => seen.gates.length, patience).toBe(count);
      expect(seen.busy.size).toBe(2);
      await expect.poll(() => saidClaimed, patience).toBeGreaterThan(0); // then a nudge may start another drain
      for (const open of seen.gates) open();
    }
    expect(await ended).toMatchObject({ claimed: 6, completed: 6, end: "empty" });
  });
});

describe("when a job of a run", () => {
  test.each(["retry", "snooze"])(
    "ends as a %s, the rest goes back and runs after it, in order",
    async (kind) => {
      const ids = await enqueueKeyed(["a0", "a1", "a2", "a3", "b0"], {}, { a1: kind });
      const report = await drain();
      expect(report).toMatchObject({ claimed: 5, completed: 2, lost: 0 });
      expect(report.failed + report.released).toBe(3);
      expect(startedOf("a")).toEqual(["a0", "a1"]);
      const attempts = kind === "retry" ? 1 : 0;
      expect(await statuses(ids)).toMatchObject({
        a1: `pending ${attempts}`,
        a2: "pending 0",
        a3: "pending 0",
      });
      await bringForward(db.pool);
      expect(await drain()).toMatchObject({ completed: 3 });
      expect(startedOf("a")).toEqual(["a0", "a1", "a1", "a2", "a3"]);
    },
  );

  test("dies, the rest waits until the dead job is discarded or replayed", async () => {
    const ids = await enqueueKeyed(["a0", "a1", "a2"], {}, { a1: "fatal" });
    expect(await drain()).toMatchObject({ claimed: 3, completed: 1, failed: 1, released: 1 });
    expect(await statuses(ids)).toEqual({ a0: "completed 1", a1: "dead 1", a2: "pending 0" });
    expect(await drain()).toMatchObject({ claimed: 0, end: "empty" });
  });

  test("dies in a queue that lets keys pass, the same drain goes on with the rest", async () => {
    const ids = await enqueueKeyed(["a0", "a1", "a2", "a3"], { queue: "passing" }, { a1: "fatal" });
    expect(await drain("passing")).toMatchObject({ completed: 3, failed: 1, released: 2, end: "empty" });
    expect(seen.started).toEqual(["a0", "a1", "a2", "a3"]);
    expect(await statuses(ids)).toMatchObject({ a1: "dead 1", a3: "completed 1" });
  });

  test("fails after it completed itself in its own transaction, the rest runs in the same drain", async () => {
    const ids = await enqueueKeyed(["a0", "a1", "a2"], { type: "careful" });
    expect(await drain()).toMatchObject({ lost: 3, end: "empty" });
    expect(seen.started).toEqual(["a0", "a1", "a2"]);
    expect(await statuses(ids)).toEqual({ a0: "completed 1", a1: "completed 1", a2: "completed 1" });
  });
});

describe("a job that waits in its run", () => {
  test("has its whole time-out when its handler starts", async () => {
    await enqueueKeyed(series("a", 6), { type: "slow" }); // 24 s together; the time-out is 10 s
    const budget = { ...roomyBudget, hardEndMs: 60_000 };
    const report = await drainQueue({ ...ports, clock }, { queue: "default", budget });
    expect(report).toMatchObject({ completed: 6, failed: 0 });
  });

  test("goes back, with all behind it, if it no longer fits before the end of the drain", async () => {
    const ids = await enqueueKeyed(series("a", 5), { type: "slow" });
    const budget = { ...roomyBudget, hardEndMs: 15_000 };
    const report = await drainQueue({ ...ports, clock }, { queue: "default", budget });
    expect(report).toMatchObject({ claimed: 5, completed: 2, released: 3, lost: 0 });
    expect(seen.started).toEqual(["a0", "a1"]);
    expect(await statuses(ids)).toMatchObject({ a1: "completed 1", a2: "pending 0", a4: "pending 0" });
  });

  test("is extended together with the job that runs", async () => {
    const ids = await enqueueKeyed(series("a", 3), { type: "brief" });
    const ended = drain();
    await expect.poll(() => seen.gates.length, patience).toBe(1);
    const [first] = await queue.query<{ deadline: Date }>("select deadline from sluice.lease");
    const extended =
      "select from sluice.lease where cardinality(ids) = 3 and deadline > $1::timestamptz + interval '2 s'";
    await expect.poll(async () => (await queue.query(extended, [first?.deadline])).length, patience).toBe(1);
    for (const count of [1, 2, 3]) {
      await expect.poll(() => seen.gates.length, patience).toBe(count);
      seen.gates.at(-1)?.();
    }
    expect(await ended).toMatchObject({ completed: 3, lost: 0 });
    expect(await statuses(ids)).toEqual({ a0: "completed 1", a1: "completed 1", a2: "completed 1" });
  });

  test("does not start when the lease of its run is lost", async () => {
    await enqueueKeyed(series("a", 3), { type: "brief" });
    const ended = drain();
    await expect.poll(() => seen.gates.length, patience).toBe(1);
    await expireLeases(db.pool, { share: 1 });
    await db.run(reapLeases({ limit: 10 }));
    await expect.poll(() => seen.aborted, patience).toMatchObject([{ name: "LeaseLostError" }]);
    expect(await ended).toMatchObject({ claimed: 3, completed: 0, lost: 3 });
    expect(seen.started).toEqual(["a0"]);
  });

  test("runs after the job whose worker has died, which runs alone", async () => {
    const ids = await enqueueKeyed(["a0", "a1", "a2", "b0"]);
    await queue.claim({ types: ["note"], run: 10, limit: 3 });
    await expireLeases(db.pool, { share: 1 });
    await db.run(reapLeases({ limit: 10 }));
    await bringForward(db.pool);
    expect(await drain()).toMatchObject({ completed: 4, lost: 0, end: "empty" });
    expect(startedOf("a")).toEqual(["a0", "a1", "a2"]);
    expect(await statuses(ids)).toMatchObject({ a0: "completed 2", a1: "completed 1", a2: "completed 1" });
  });

  test("does not start when an earlier job of its run could not be settled", async () => {
    const ids = await enqueueKeyed(["a0", "a1", "a2"], { type: "gated" }, { a0: "at once" });
    const impatient = { ...ports, clock: { ...ports.clock, sleep: async () => {} } };
    counting.failNext("settle", 8);
    const report = await drainQueue(impatient, { queue: "default", budget: roomyBudget });
    expect(report).toMatchObject({ claimed: 3, completed: 0, lost: 3, end: "error" });
    expect(seen.started).toEqual(["a0", "a1"]);
    expect(seen.aborted).toMatchObject([{ name: "LeaseLostError" }]);
    expect(await statuses(ids)).toMatchObject({ a0: "processing 1", a1: "processing 1", a2: "processing 1" });
  });
});
