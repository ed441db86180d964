// Schedules: put, pause, resume, run now, delete, and what each does to the slots.
import { beforeEach, describe, expect, test } from "vitest";
import {
  deleteSchedule,
  listSchedules,
  pauseSchedule,
  putSchedule,
  resumeSchedule,
  runSchedule,
} from "../../src/core/sql/index.ts";
import { differences } from "../support/balance.ts";
import { newSchedule, scheduleVerbsOf } from "../support/schedules.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const verbs = verbsOf(db);
const schedules = scheduleVerbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const lastAudit = async () =>
  (
    await verbs.query(
      "select actor, action, target, before, after from sluice.audit order by id desc limit 1",
    )
  )[0];
const put = (fields: object = {}) => db.run(putSchedule("me", { ...newSchedule, paused: false, ...fields }));

describe("put", () => {
  test("makes a schedule and audits it", async () => {
    expect(await put()).toBe("created");
    expect(await schedules.find()).toEqual({
      ...newSchedule,
      ...{ priority: 5, paused: false, source: "api", nextSlots: [], lastSlot: null, lastJobId: null },
    });
    expect(await lastAudit()).toMatchObject({
      ...{ actor: "me", action: "put", target: "schedule nightly", before: null },
      after: { cron: "0 2 * * *", type: "echo" },
    });
  });

  test("with another payload or queue keeps the slots, and the next job has them", async () => {
    await put();
    await schedules.plan(-1, 60);
    expect(await put({ payload: { b: 2 }, queue: "other" })).toBe("changed");
    expect(await verbs.count("scheduled")).toBe(2);
    const [job] = await verbs.claim({ queue: "other" });
    expect(job?.payload).toEqual({ b: 2 });
    expect(await lastAudit()).toMatchObject({ before: { queue: "default" }, after: { queue: "other" } });
  });

  test("with another expression or zone drops the slots, and the next are planned from now on", async () => {
    for (const fields of [{ cron: "0 3 * * *" }, { timeZone: "Europe/Berlin" }]) {
      await put({ cron: "0 4 * * *", timeZone: "UTC" });
      await schedules.plan(-1, 60);
      await put(fields);
      expect(await verbs.count("scheduled")).toBe(0);
      expect(
        await verbs.query(
          "select from sluice.schedule where planned_until > now() - interval '1 min' and refill_at < now()",
        ),
      ).toHaveLength(1);
    }
  });

  test("waits for a claim that fires a slot at this moment, and does not lose or repeat it", async () => {
    await put();
    await schedules.plan(-1, 60);
    const client = await db.pool.connect();
    await client.query("begin");
    await client.query("select sluice.claim('default', array['echo'], 10, 60)");
    const change = put({ cron: "0 3 * * *" });
    await new Promise((resolve) => setTimeout(resolve, 50));
    await client.query("commit");
    client.release();
    expect(await change).toBe("changed");
    expect(await verbs.count("job")).toBe(1);
    expect(await verbs.count("scheduled")).toBe(0);
  });

  test("by sixteen at once makes one schedule", async () => {
    const answers = await Promise.all(times(16, () => put()));
    expect(answers.filter((answer) => answer === "created")).toHaveLength(1);
    expect(await verbs.count("schedule")).toBe(1);
  });

  test.each([
    ["type: must not begin", { type: "sluice.canary" }],
    ["type: lower case", { type: "No" }],
    ["payload: must be a JSON object", { payload: [] }],
    ["priority: ", { priority: 12 }],
  ])("refuses %s", async (message, fields) => {
    await expect(put(fields)).rejects.toThrow(message);
  });
});

describe("pause and resume", () => {
  test("a paused schedule has no slots and is never planned; it goes on from the time of the resume", async () => {
    await put();
    await schedules.plan(-1, 60);
    expect(await db.run(pauseSchedule("me", "nightly"))).toBe(true);
    expect(await schedules.find()).toMatchObject({ paused: true, nextSlots: [] });
    expect(await lastAudit()).toMatchObject({
      action: "pause",
      before: { paused: false },
      after: { paused: true },
    });
    expect(await schedules.plan(60)).toBe(0);
    expect(await verbs.claim()).toEqual([]);
    await db.run(resumeSchedule("me", "nightly"));
    expect(await schedules.plan(60)).toBe(1);
    expect(await schedules.find()).toMatchObject({ paused: false, nextSlots: [expect.any(Date)] });
  });

  test("a put can pause and resume too, and a second pause changes nothing", async () => {
    await put({ paused: true });
    const since = await verbs.query("select paused_since from sluice.schedule");
    await db.run(pauseSchedule("me", "nightly"));
    await put({ paused: true });
    expect(await verbs.query("select paused_since from sluice.schedule")).toEqual(since);
    expect((await schedules.put()).paused).toBe(false);
    expect(await schedules.plan(60)).toBe(1);
  });

  test("of an unknown schedule is false", async () => {
    expect(await db.run(pauseSchedule("me", "unknown"))).toBe(false);
    expect(await db.run(resumeSchedule("me", "unknown"))).toBe(false);
    expect(await db.run(deleteSchedule("me", "unknown"))).toBe(false);
    expect(await db.run(runSchedule("me", "unknown"))).toBeNull();
  });
});

test("run makes a job now, beside the slots, while paused too", async () => {
  await put();
  await schedules.plan(60);
  const id = await db.run(runSchedule("me", "nightly"));
  expect(await verbs.claim()).toMatchObject([{ id, schedule: { name: "nightly", missed: false } }]);
  expect((await schedules.find()).nextSlots).toHaveLength(1);
  expect(await schedules.find()).toMatchObject({ lastJobId: id });
  expect(await lastAudit()).toMatchObject({ action: "run", after: { job_id: id } });
  await db.run(pauseSchedule("me", "nightly"));
  await db.run(runSchedule("me", "nightly"));
  expect(await verbs.claim()).toHaveLength(1);
  expect(await differences(verbs)).toEqual([]);
});

test("delete removes the slots, and leaves the jobs and what they say", async () => {
  await put();
  await put({ name: "other" });
  await schedules.plan(-1, 60);
  const [job] = await verbs.claim();
  await db.run(deleteSchedule("me", "nightly"));
  expect(await verbs.count("scheduled")).toBe(1);
  expect(await verbs.count("schedule_run")).toBe(1);
  expect((await verbs.find(job?.id ?? "")).schedule?.name).toBe(job?.schedule?.name);
  expect(await lastAudit()).toMatchObject({ action: "delete", after: null });
});

test("the list is by name, in pages", async () => {
  for (const name of ["b", "c", "a"]) await put({ name });
  const page = await db.run(listSchedules({ limit: 2 }));
  expect(page.map(({ name }) => name)).toEqual(["a", "b"]);
  expect((await db.run(listSchedules({ after: "b", limit: 2 }))).map(({ name }) => name)).toEqual(["c"]);
});
