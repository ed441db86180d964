// claim: which jobs it takes, in which order, and how many. claim-at-once.test.ts tests concurrent claims.
import { beforeEach, describe, expect, test } from "vitest";
import { generationOf } from "../../src/core/job.ts";
import type { Claim } from "../../src/core/sql/claim.ts";
import { cancel, replay } from "../../src/core/sql/index.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, secondsFromNow, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const names = async (options: Partial<Claim>) => (await queue.claim(options)).map((job) => job.payload.name);
const named = (name: string, fields = {}) => ({ payload: { name }, ...fields });

describe("a claim takes", () => {
  test("the highest priority first, then the oldest job", async () => {
    await queue.enqueue(
      named("normal 1"),
      named("low", { priority: 0 }),
      named("high 1", { priority: 9 }),
      named("normal 2"),
      named("high 2", { priority: 9 }),
    );
    expect(await names({ limit: 3 })).toEqual(["high 1", "high 2", "normal 1"]);
    expect(await names({ limit: 3 })).toEqual(["normal 2", "low"]);
  });

  test("the oldest job first across the types of one priority", async () => {
    const types = ["a", "b", "c"];
    await queue.enqueue(...times(60, (n) => named(`${n}`, { type: types[(n * n) % 3] })));
    const claimed = [
      ...(await names({ types, limit: 7 })),
      ...(await names({ types, limit: 20 })),
      ...(await names({ types, limit: 100 })),
    ];
    expect(claimed).toEqual(times(60, String));
  });

  test("the oldest job first when one of many types has nearly all the jobs", async () => {
    const types = times(10, (n) => `type-${n}`);
    await queue.enqueue(...times(100, (n) => named(`${n}`, { type: "type-0" })));
    await queue.enqueue(...types.slice(1).map((type) => named(type, { type })));
    await queue.enqueue(named("low", { type: "type-0", priority: 1 }));
    expect(await names({ types, limit: 50 })).toEqual(times(50, String));
    expect(await names({ types, limit: 50 })).toEqual(times(50, (n) => String(50 + n)));
    expect(await names({ types, limit: 50 })).toEqual([...types.slice(1), "low"]);
  });

  test("only the types and the queue that it names", async () => {
    await queue.enqueue(
      named("mine"),
      named("other type", { type: "other" }),
      named("x", { queue: "other" }),
    );
    expect(await names({})).toEqual(["mine"]);
  });
});

describe("due jobs", () => {
  test("a scheduled job is claimed when it is due, not before", async () => {
    const id = await queue.enqueueOne({ delaySeconds: 60 });
    expect(await queue.claim()).toEqual([]);
    await makeDue();
    expect(await queue.claim()).toMatchObject([{ id }]);
  });

  test("scheduled jobs are claimed in the order of their times, after jobs that were ready before", async () => {
    await queue.enqueue(named("third", { delaySeconds: 30 }), named("second", { delaySeconds: 20 }));
    await queue.enqueue(named("first"));
    await makeDue();
    expect(await names({})).toEqual(["first", "second", "third"]);
  });

  test("a claim makes a bounded number of due jobs ready, and later claims the rest", async () => {
    await queue.enqueue(...times(250, () => ({ delaySeconds: 60 })));
    await makeDue();
    expect(await queue.claim({ limit: 1 })).toHaveLength(1);
    expect([await queue.count("scheduled"), await queue.count("ready")]).toEqual([150, 99]);
    expect(await queue.claim({ limit: 1000 })).toHaveLength(249);
    expect(await queue.count("scheduled")).toBe(0);
  });

  async function makeDue() {
    await queue.query("update sluice.scheduled set run_at = run_at - interval '1 hour'");
    await queue.query("select sluice.reset_cursors()");
  }
});

describe("an expired job", () => {
  const expire = () => queue.query("update sluice.job set expires_at = now() where payload ? 'old'");

  test("is buried by the claim that finds it, and never runs", async () => {
    const [old, good] = await queue.enqueue({ payload: { old: true } }, {});
    await expire();
    expect(await queue.claim()).toMatchObject([{ id: good?.id }]);
    expect(await queue.find(old?.id ?? "")).toMatchObject({
      status: "dead",
      deadReason: "expired",
      attempts: 0,
    });
  });
});

describe("the size of a claim", () => {
  test.each([
    [9, 10, 9, false],
    [10, 10, 10, false],
    [11, 10, 10, true],
  ])(
    "with %i waiting jobs, a claim of %i takes %i, and says whether there are more",
    async (waiting, limit, taken, more) => {
      await queue.enqueue(...times(waiting, (n) => ({ priority: n % 2, type: n % 3 === 0 ? "a" : "b" })));
      const { jobs, hasMore } = await queue.claimBatch({ types: ["a", "b"], limit });
      expect([jobs.length, hasMore]).toEqual([taken, more]);
    },
  );

  test("payloads beyond 4 MiB are left for the next claim", async () => {
    await queue.enqueue(...times(100, () => ({ payload: { text: "x".repeat(60_000) } })));
    const { jobs, hasMore } = await queue.claimBatch();
    expect([jobs.length, hasMore]).toEqual([Math.floor(4_194_304 / 60_012), true]);
    const rest = await queue.claimBatch();
    expect([rest.jobs.length, rest.hasMore]).toEqual([31, false]);
  });

  test("a job that is larger than a claim may be is claimed alone", async () => {
    await queue.enqueue({ payload: { text: "x".repeat(5000) } }, {});
    expect(await queue.claim({ maxBytes: 1000 })).toHaveLength(1);
    expect(await queue.claim({ maxBytes: 1000 })).toHaveLength(1);
  });

  test("a claim of an empty queue takes nothing and writes nothing", async () => {
    expect(await queue.claim()).toEqual([]);
    expect(await queue.count("ledger")).toBe(0);
  });
});

describe("a claimed job has", () => {
  test("its fields, its lease and the worker's name", async () => {
    const fields = {
      payload: { a: 1 },
      partitionKey: "p",
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      tags: ["x"],
      priority: 7,
    };
    const id = await queue.enqueueOne({ ...fields, maxAttempts: 3 });
    const job = await queue.claimOne({ leaseSeconds: 120, worker: "w-1" });
    expect(job).toMatchObject({
      ...fields,
      id,
      type: "echo",
      attempt: 1,
      maxAttempts: 3,
      abandonments: 0,
      errors: [],
    });
    expect(secondsFromNow(job.leaseExpiresAt)).toBeCloseTo(120, -1);
    expect(await queue.query("select status, attempts, worker from sluice.jobs")).toEqual([
      { status: "processing", attempts: 1, worker: "w-1" },
    ]);
  });

  test("the errors of its earlier attempts", async () => {
    await queue.enqueueOne();
    for (const message of ["one", "two"])
      await queue.settle([await queue.claimOne()], { kind: "retry", message, retryInSeconds: 0 });
    expect(await queue.claimOne()).toMatchObject({
      attempt: 3,
      errors: [
        { attempt: 1, message: "one" },
        { attempt: 2, message: "two" },
      ],
    });
  });

  test("a generation that rises with every claim, also after a release, a retry and a replay", async () => {
    const id = await queue.enqueueOne();
    const generations: bigint[] = [];
    const next = async () => {
      const job = await queue.claimOne();
      generations.push(BigInt(generationOf(job.leaseKey)));
      return job;
    };
    await queue.settle([await next()], { kind: "release" });
    await queue.settle([await next()], { kind: "retry", message: "", retryInSeconds: 0 });
    await queue.settle([await next()], { kind: "bury", message: "" });
    await db.run(replay("ann", { id }));
    const last = await next();
    expect(last.attempt).toBe(1);
    await queue.settle([last], complete);
    expect(generations).toEqual([...new Set(generations)].sort((a, b) => (a < b ? -1 : 1)));
    expect(generations).toHaveLength(4);
  });
});

test("a cancelled job is not claimed", async () => {
  const [first, second] = await queue.enqueue({}, {});
  expect(await queue.isApplied(cancel(first?.id ?? ""))).toBe(true);
  expect(await queue.claim()).toMatchObject([{ id: second?.id }]);
});
