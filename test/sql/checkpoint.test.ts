// checkpoint: what durable steps returned is stored under the lease's fence, once.
import { beforeEach, describe, expect, test } from "vitest";
import { cancel, checkpoint, findSteps, listSteps, reapLeases } from "../../src/core/sql/index.ts";
import { bringForward } from "../model/gate/gate-time.ts";
import { inSession, untilWaiting } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

async function claimNew(leaseSeconds = 60) {
  await queue.enqueueOne();
  return queue.claimOne({ leaseSeconds });
}
type Job = Awaited<ReturnType<typeof claimNew>>;

const store = async (job: Job, steps: Record<string, number>) => {
  const given = Object.entries(steps).map(([name, value]) => ({ name, value }));
  return (await db.run(checkpoint([{ job, steps: given }], { seconds: 60 })))[0];
};
const stored = async (job: Job) => (await db.run(findSteps([job.id]))).byJob[job.id] ?? {};
const secondsLeft = async () =>
  (
    await queue.query<{ seconds: number }>(
      "select extract(epoch from deadline - now())::float8 as seconds from sluice.lease",
    )
  )[0]?.seconds;

test("steps of one job and of several are stored by one statement", async () => {
  const [a, b] = [await claimNew(), await claimNew()];
  const steps = (n: number) => [
    { name: "one", value: n },
    { name: "two", value: { deep: [n] } },
  ];
  expect(
    await db.run(
      checkpoint(
        [
          { job: a, steps: steps(1) },
          { job: b, steps: steps(2) },
        ],
        { seconds: 60 },
      ),
    ),
  ).toEqual([
    { cancelRequested: false, steps: {} },
    { cancelRequested: false, steps: {} },
  ]);
  expect(await stored(a)).toEqual({ one: 1, two: { deep: [1] } });
  expect(await stored(b)).toEqual({ one: 2, two: { deep: [2] } });
});

test("the first value wins, and the answer has it", async () => {
  const job = await claimNew();
  await store(job, { one: 1 });
  expect(await store(job, { one: 2, two: 2 })).toEqual({ cancelRequested: false, steps: { one: 1 } });
  expect(await stored(job)).toEqual({ one: 1, two: 2 });
});

test("of two that store the same step at once, the first wins", async () => {
  const job = await claimNew();
  await inSession(db.pool, async (session) => {
    await session.query("begin");
    await session.query("select sluice.checkpoint($1, $2, $3)", [
      job.id,
      job.leaseKey,
      JSON.stringify([{ name: "one", value: "first" }]),
    ]);
    const second = store(job, { one: 2 });
    await untilWaiting(db.pool);
    await session.query("commit");
    expect(await second).toEqual({ cancelRequested: false, steps: { one: "first" } });
  });
});

test("what stored nothing is a JSON null, and comes back as null", async () => {
  const job = await claimNew();
  await db.run(checkpoint([{ job, steps: [{ name: "one", value: null }] }], { seconds: 60 }));
  expect(await stored(job)).toEqual({ one: null });
});

describe("the times of steps", () => {
  const nowMs = async () =>
    (
      await queue.query<{ now: number }>("select extract(epoch from clock_timestamp())::float8 * 1000 as now")
    )[0]?.now ?? 0;

  test("are when each was stored, by the database's clock, and how long it took", async () => {
    const job = await claimNew();
    const before = await nowMs();
    const steps = [
      { name: "one", value: 1, took_ms: 1_500 },
      { name: "nap", seconds: 30 },
    ];
    await db.run(checkpoint([{ job, steps }], { seconds: 60 }));
    const after = await nowMs();
    const [one, nap] = await db.run(listSteps(job.id));
    expect(one).toMatchObject({ name: "one", kind: "run", value: 1 });
    expect(one?.endedAt?.getTime()).toBeGreaterThanOrEqual(Math.floor(before));
    expect(one?.endedAt?.getTime()).toBeLessThanOrEqual(after);
    expect(Number(one?.endedAt) - Number(one?.startedAt)).toBe(1_500);
    expect(nap).toMatchObject({ name: "nap", kind: "sleep" });
    expect(Math.abs(Number(nap?.endedAt) - Number(nap?.startedAt) - 30_000)).toBeLessThanOrEqual(
      1 + after - before,
    );
  });

  test("stay those of the first when a step is stored again", async () => {
    const job = await claimNew();
    const again = (took_ms: number) =>
      db.run(checkpoint([{ job, steps: [{ name: "one", value: 1, took_ms }] }], { seconds: 60 }));
    await again(5);
    const first = await db.run(listSteps(job.id));
    await again(9_000);
    expect(await db.run(listSteps(job.id))).toEqual(first);
  });

  test("are missing in steps of an older release, whose values are still there", async () => {
    const job = await claimNew();
    await store(job, { new: 2 });
    await queue.query("insert into sluice.checkpoint (id, name, value) values ($1, 'old', '{\"n\": 1}')", [
      job.id,
    ]);
    expect(await stored(job)).toEqual({ old: { n: 1 }, new: 2 });
    expect(await db.run(listSteps(job.id))).toEqual([
      { name: "old", kind: "run", startedAt: null, endedAt: null, value: { n: 1 } },
      { name: "new", kind: "run", startedAt: null, endedAt: expect.any(Date), value: 2 },
    ]);
  });

  test("come without values that are too large together", async () => {
    const job = await claimNew();
    const text = "x".repeat(200_000);
    for (const name of ["a", "b", "c"]) {
      const random = Array.from(text, () => Math.random().toString(36)[2]).join("");
      await db.run(checkpoint([{ job, steps: [{ name, value: random }] }], { seconds: 60 }));
    }
    expect((await db.run(listSteps(job.id))).map((step) => [step.name, "value" in step])).toEqual([
      ["a", true],
      ["b", false],
      ["c", false],
    ]);
  });

  test("are never negative", async () => {
    const job = await claimNew();
    await db.run(checkpoint([{ job, steps: [{ name: "one", value: 1, took_ms: -5_000 }] }], { seconds: 60 }));
    const [step] = await db.run(listSteps(job.id));
    expect(step).toMatchObject({ kind: "run", startedAt: step?.endedAt });
  });
});

describe("a worker that lost its lease stores nothing", () => {
  test("after the lease ran out", async () => {
    const job = await claimNew(-1);
    expect(await db.run(reapLeases({ limit: 10 }))).toEqual({ returned: 1, buried: 0 });
    expect(await store(job, { one: 1 })).toBeNull();
    await bringForward(db.pool);
    const again = await queue.claimOne();
    expect(again.id).toBe(job.id);
    expect(await store(job, { one: 1 })).toBeNull();
    expect(await stored(job)).toEqual({});
    expect(await store(again, { one: 2 })).not.toBeNull();
  });

  test("after the job completed", async () => {
    const job = await claimNew();
    await queue.settle([job], complete);
    expect(await store(job, { one: 1 })).toBeNull();
    expect(await queue.count("checkpoint")).toBe(0);
  });

  test("beside another job whose lease still holds", async () => {
    const [lost, held] = [await claimNew(), await claimNew()];
    await queue.settle([lost], complete);
    const steps = [{ name: "one", value: 1 }];
    const answers = await db.run(
      checkpoint(
        [
          { job: lost, steps },
          { job: held, steps },
        ],
        { seconds: 60 },
      ),
    );
    expect(answers).toEqual([null, { cancelRequested: false, steps: {} }]);
  });
});

test("the reaper leaves a lease alone while a step is being stored", async () => {
  const job = await claimNew(-1);
  await inSession(db.pool, async (session) => {
    await session.query("begin");
    await session.query("select sluice.checkpoint($1, $2, $3)", [
      job.id,
      job.leaseKey,
      JSON.stringify([{ name: "one", value: 1 }]),
    ]);
    expect(await db.run(reapLeases({ limit: 10 }))).toEqual({ returned: 0, buried: 0 });
    await session.query("commit");
  });
  expect(await db.run(reapLeases({ limit: 10 }))).toEqual({ returned: 0, buried: 0 }); // it was extended
});

test("a settle that holds the lease comes first, and the step is not stored", async () => {
  const job = await claimNew();
  await inSession(db.pool, async (session) => {
    await session.query("begin");
    await session.query("select sluice.settle(array[$1]::uuid[], array[$2]::uuid[])", [job.id, job.leaseKey]);
    const late = store(job, { one: 1 });
    await untilWaiting(db.pool);
    await session.query("commit");
    expect(await late).toBeNull();
  });
});

test("the lease is extended only when less than half of the time is left", async () => {
  const job = await claimNew(40);
  await store(job, { one: 1 });
  expect(await secondsLeft()).toBeLessThan(41);
  await queue.query("update sluice.lease set deadline = now() + interval '20 seconds'");
  await store(job, { two: 2 });
  expect(await secondsLeft()).toBeGreaterThan(55);
});

test("a sleep keeps the time that it was first given", async () => {
  const job = await claimNew();
  const sleep = async (seconds: number) =>
    (await db.run(checkpoint([{ job, steps: [{ name: "rest", seconds }] }], { seconds: 60 })))[0]?.steps.rest;
  const first = await sleep(100);
  const { nowMs } = await db.run(findSteps([job.id]));
  expect((Number(first) - nowMs) / 1000).toBeCloseTo(100, 0);
  expect(await sleep(500)).toBe(first);
});

test("the answer tells that somebody asked to cancel the job", async () => {
  const job = await claimNew();
  await db.run(cancel(job.id, { running: true }));
  expect(await store(job, { one: 1 })).toMatchObject({ cancelRequested: true });
});

describe("a claim brings the stored steps along", () => {
  const again = async (stepTypes?: string[]) => queue.claimOne(stepTypes ? { stepTypes } : {});

  test("of the types that it names", async () => {
    const job = await claimNew();
    await store(job, { one: 1 });
    await queue.settle([job], { kind: "release" });
    const next = await again(["echo"]);
    expect(next.stored?.steps).toEqual({ one: 1 });
    expect(Math.abs((next.stored?.nowMs ?? 0) - Date.now())).toBeLessThan(5_000);
    await queue.settle([next], { kind: "release" });
    expect((await again(["other"])).stored).toBeNull();
  });

  test("an empty object, if there are none", async () => {
    await queue.enqueueOne();
    expect((await again(["echo"])).stored?.steps).toEqual({});
  });

  test("not those that are too large: they are read by another statement", async () => {
    const job = await claimNew();
    // Random, so that Postgres cannot compress it.
    const value = times(60_000, () => Math.random().toString(36)).join("");
    await db.run(checkpoint([{ job, steps: [{ name: "big", value }] }], { seconds: 60 }));
    await queue.settle([job], { kind: "release" });
    expect((await again(["echo"])).stored).toBeNull();
    expect((await stored(job)).big === value).toBe(true);
  });
});

test("the steps of a dead job wait for its replay, and go with the job", async () => {
  const job = await claimNew();
  await store(job, { one: 1 });
  await queue.settle([job], { kind: "bury", message: "no use" });
  expect(await stored(job)).toEqual({ one: 1 });
  await queue.query("select sluice.forget_jobs($1)", [[job.id]]);
  expect(await queue.count("checkpoint")).toBe(0);
});
