// Firing slots: each makes one job, whatever claims, crashes and repeats there are, and late ones follow the schedule's rule.
import { beforeEach, describe, expect, test } from "vitest";
import { look, planSlots, schedulesToPlan } from "../../src/core/sql/index.ts";
import { differences } from "../support/balance.ts";
import { scheduleVerbsOf } from "../support/schedules.ts";
import { inSession } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const verbs = verbsOf(db);
const schedules = scheduleVerbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const slotsOf = (jobs: { schedule: { slot: string } | null }[]) =>
  jobs.map(({ schedule }) => schedule?.slot ?? "").toSorted();

describe("a due slot", () => {
  test("makes one job, which knows its slot", async () => {
    await schedules.put({ priority: 7 });
    await schedules.plan(-1, 3600);
    const [job, ...others] = await verbs.claim();
    expect(others).toEqual([]);
    expect(job).toMatchObject({ type: "echo", payload: { a: 1 }, priority: 7, maxAttempts: 5 });
    expect(job?.schedule).toEqual({
      name: "nightly",
      slot: expect.stringMatching(/:\d\d\.000Z$/),
      missed: false,
    });
    expect((await verbs.find(job?.id ?? "")).schedule).toEqual(job?.schedule);
    expect(await verbs.claim()).toEqual([]);
    expect(await schedules.find()).toMatchObject({
      lastSlot: new Date(job?.schedule?.slot ?? ""),
      lastJobId: job?.id,
      nextSlots: [expect.any(Date)],
    });
    expect(await differences(verbs)).toEqual([]);
  });

  test("of another queue is fired by any claim", async () => {
    await schedules.put({ queue: "other" });
    await schedules.plan(-1);
    expect(await verbs.claim()).toEqual([]);
    expect(await verbs.count("ready")).toBe(1);
    expect(await verbs.claim({ queue: "other" })).toHaveLength(1);
  });

  test("shows in the backlog, so a round starts a drain for it", async () => {
    await schedules.put({ queue: "other" });
    await schedules.plan(-1);
    expect(await verbs.query("select * from sluice.backlog(array['echo'], 10)")).toEqual([
      { queue: "other", due: "1" },
    ]);
  });

  test("is no job: it is not counted, listed or found", async () => {
    await schedules.put();
    await schedules.plan(-1, 60);
    expect(await differences(verbs)).toEqual([]);
    expect(
      await verbs.query("select * from sluice.list_jobs(null, 'pending', null, null, null, 10)"),
    ).toEqual([]);
    expect(await verbs.query("select sluice.cancel(id) as answer from sluice.scheduled")).toEqual([
      { answer: null },
      { answer: null },
    ]);
    expect(await verbs.count("scheduled")).toBe(2);
  });

  test("makes one job when many claims run at once", async () => {
    for (const n of times(20, (n) => n)) await schedules.put({ name: `s${n}` });
    await schedules.plan(-3, -2, -1);
    const claimed = await Promise.all(times(16, () => verbs.claim({ limit: 5 })));
    const rest = await verbs.claim({ limit: 100 });
    const jobs = [...claimed.flat(), ...rest];
    expect(jobs).toHaveLength(60);
    expect(new Set(jobs.map(({ schedule }) => `${schedule?.name} ${schedule?.slot}`)).size).toBe(60);
    expect(await verbs.count("job")).toBe(60);
    expect(await differences(verbs)).toEqual([]);
  });

  test("comes back when the claim that fired it is lost before its commit", async () => {
    await schedules.put();
    await schedules.plan(-1);
    const client = await db.pool.connect();
    await client.query("begin");
    await client.query("select sluice.claim('default', array['echo'], 10, 60)");
    expect(await verbs.claim()).toEqual([]); // another one does not wait for it
    await client.query("rollback");
    client.release();
    expect(await verbs.count("job")).toBe(0);
    expect(await verbs.claim()).toHaveLength(1);
  });

  test("that was fired is not fired again when it is planned again", async () => {
    await schedules.put();
    await schedules.plan(-1);
    await verbs.claim();
    await verbs.query(`insert into sluice.scheduled (run_at, id, lane, place)
      select slot, sluice.slot_id(schedule, slot), lane, -1
      from sluice.schedule_run join sluice.schedule on number = schedule`);
    await verbs.query("select sluice.reset_cursors()");
    expect(await verbs.claim()).toEqual([]);
    expect(await verbs.count("job")).toBe(1);
  });
});

describe("slots that nobody fired within 90 seconds", () => {
  test("make no job by `skip`", async () => {
    await schedules.put({ missed: "skip" });
    await schedules.plan(-300, -200, -10);
    const jobs = await verbs.claim();
    expect(jobs.map(({ schedule }) => schedule?.missed)).toEqual([false]);
  });

  test("make one job by `last`, in one claim or in several", async () => {
    await schedules.put({ missed: "last" });
    await schedules.put({ name: "other", missed: "last" });
    await schedules.plan(...times(150, (n) => -1000 + n), -10, 3600);
    const jobs = (await Promise.all(times(8, () => verbs.claim({ limit: 1 })))).flat();
    for (let round = 0; round < 5; round++) jobs.push(...(await verbs.claim()));
    const slots = jobs.filter(({ schedule }) => schedule?.missed);
    expect(slots.map(({ schedule }) => schedule?.name).toSorted()).toEqual(["nightly", "other"]);
    expect(new Set(slotsOf(slots)).size).toBe(1);
    expect(jobs).toHaveLength(4);
    expect(await verbs.query("select from sluice.scheduled where run_at < now()")).toEqual([]);
  });

  test("all make a job by `all`", async () => {
    await schedules.put({ missed: "all" });
    await schedules.plan(-300, -200, -10);
    const jobs = await verbs.claim();
    expect(jobs.map(({ schedule }) => schedule?.missed)).toEqual([true, true, false]);
  });

  test("by `last`, with nothing planned after them, wait for a plan that knows the latest", async () => {
    await schedules.put({ missed: "last" });
    await schedules.plan(-300, -200);
    expect(await verbs.claim()).toEqual([]);
    const { schedules: toPlan } = await db.run(schedulesToPlan({ limit: 10 }));
    const [late] = toPlan;
    if (!late) throw new Error("nothing is to be planned");
    expect(Math.round((late.nowMs - late.fromMs) / 1000)).toBeOneOf([200, 201]);
    const slotsMs = [late.nowMs - 100_000, late.nowMs + 3_600_000].map((ms) => Math.floor(ms / 1000) * 1000);
    await db.run(planSlots([{ ...late, slotsMs, refillMs: late.nowMs }]));
    const jobs = await verbs.claim();
    expect(jobs.map(({ schedule }) => schedule)).toEqual([
      { name: "nightly", slot: new Date(slotsMs[0] ?? 0).toISOString(), missed: true },
    ]);
  });

  test("are fired, and not lost, if the schedule is locked at that moment", async () => {
    await schedules.put({ missed: "last" });
    await schedules.plan(-300);
    const client = await db.pool.connect();
    await client.query("begin");
    await client.query("select from sluice.schedule for update");
    expect(await verbs.claim()).toHaveLength(1);
    await client.query("rollback");
    client.release();
  });
});

describe("overlap: skip", () => {
  test("makes no job while the last one has not ended", async () => {
    await schedules.put({ overlap: "skip" });
    await schedules.plan(-3, -2);
    const [job, ...others] = await verbs.claim();
    expect(others).toEqual([]);
    await verbs.query("update sluice.schedule set refill_at = now()");
    await schedules.plan(-1);
    expect(await verbs.claim()).toEqual([]);
    if (job) await verbs.settle([job], complete);
    await verbs.query("update sluice.schedule set refill_at = now()");
    await schedules.plan(0);
    expect(await verbs.claim()).toHaveLength(1);
  });

  test("holds when claims fire two slots at once, and neither waits for the other", async () => {
    await schedules.put({ overlap: "skip" });
    await schedules.plan(-2, -1);
    await inSession(db.pool, async (first) => {
      await first.query("begin");
      await first.query("select sluice.promote_due(1, null)"); // a claim that has fired a slot and is not committed yet
      expect(await verbs.claim()).toEqual([]);
      const { waiting } = await db.run(
        look({ types: [{ type: "echo" }], cap: 10, upkeep: false, seconds: 1 }),
      );
      expect(waiting).toEqual([{ queue: "default", due: 2 }]); // so somebody comes back for what was left
      await first.query("commit");
    });
    expect(await verbs.claim()).toHaveLength(1);
    expect(await verbs.count("job")).toBe(1);
    expect(await verbs.count("scheduled")).toBe(0);
  });

  test("makes one job of many slots when many claims run at once", async () => {
    await schedules.put({ overlap: "skip" });
    await schedules.plan(...times(30, (n) => n - 30));
    const claimed = (await Promise.all(times(16, () => verbs.claim({ limit: 1 })))).flat();
    claimed.push(...(await verbs.claim()));
    expect(claimed).toHaveLength(1);
    expect(await verbs.count("job")).toBe(1);
    expect(await verbs.count("scheduled")).toBe(0);
  });
});

test("thousands of schedules cost a claim no more pages", async () => {
  const pagesOfClaim = async () => {
    await verbs.query("select sluice.enqueue_many('echo', array_fill('{}'::jsonb, array[20]))");
    await verbs.query("analyze");
    for (let n = 0; n < 5; n++) await verbs.claim({ limit: 1 });
    const [row] = await verbs.query<{ "QUERY PLAN": [{ Plan: { "Shared Hit Blocks": number } }] }>(
      "explain (analyze, buffers, format json) select sluice.claim('default', array['echo'], 1, 300)",
    );
    return row?.["QUERY PLAN"][0].Plan["Shared Hit Blocks"] ?? 0;
  };
  const before = await pagesOfClaim();
  const fields = '{"cron": "0 2 * * *", "type": "echo"}';
  await verbs.query("select sluice.put_schedule('me', 's' || n, $1) from generate_series(1, 3000) as n", [
    fields,
  ]);
  await schedules.plan(...times(10, (n) => 3600 + n));
  expect(await verbs.count("scheduled")).toBe(30_000);
  expect(await pagesOfClaim()).toBeLessThanOrEqual(before + 4); // the index of times has one level more
});
