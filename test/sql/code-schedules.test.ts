// The schedules in code: the newest deployment's set is applied once, and those of the API are left alone.
import { beforeEach, expect, test } from "vitest";
import type { NewSchedule } from "../../src/core/schedule.ts";
import {
  applyCodeSchedules,
  listSchedules,
  pauseSchedule,
  putSchedule,
  schedulesToPlan,
} from "../../src/core/sql/index.ts";
import { newSchedule } from "../support/schedules.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const verbs = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const named = (...names: string[]): NewSchedule[] => names.map((name) => ({ ...newSchedule, name }));
/** What a round of a deployment with this set does. The set's text stands for its checksum. */
async function round(...names: string[]): Promise<boolean> {
  const checksum = names.join(",");
  const { apply } = await db.run(schedulesToPlan({ limit: 1, checksum }));
  if (apply) await db.run(applyCodeSchedules(checksum, named(...names)));
  return apply;
}
const inCode = async () =>
  (await db.run(listSchedules({ limit: 100 })))
    .filter(({ source }) => source === "code")
    .map(({ name }) => name);
const pass = (interval: string) =>
  verbs.query(
    "update sluice.code_schedules set first_seen_at = first_seen_at - $1::interval, seen_at = seen_at - $1::interval",
    [interval],
  );

test("a set is applied once; what has gone from the code is removed, and what the API made stays", async () => {
  await db.run(putSchedule("me", { ...newSchedule, name: "by-hand", paused: false }));
  expect(await round("a", "b")).toBe(true);
  expect(await round("a", "b")).toBe(false);
  expect(await inCode()).toEqual(["a", "b"]);
  expect(await round("b", "c")).toBe(true);
  expect(await inCode()).toEqual(["b", "c"]);
  expect(await verbs.query("select name from sluice.schedule where source = 'api'")).toEqual([
    { name: "by-hand" },
  ]);
  expect(await round()).toBe(true);
  expect(await inCode()).toEqual([]);
});

test("while two versions run, the one that came last wins, and they do not take turns", async () => {
  await round("a");
  await pass("5 minutes");
  await round("b");
  for (let minute = 0; minute < 30; minute += 5) {
    expect(await round("a")).toBe(false);
    expect(await round("b")).toBe(false);
    await pass("5 minutes");
  }
  expect(await inCode()).toEqual(["b"]);
});

test("after a rollback the old set counts again, when the new one was not seen for 15 minutes", async () => {
  await round("a");
  await round("b");
  await pass("10 minutes");
  expect(await round("a")).toBe(false);
  await pass("6 minutes");
  expect(await round("a")).toBe(true);
  expect(await inCode()).toEqual(["a"]);
});

test("a set that was away for long and comes back is new", async () => {
  await round("a");
  await pass("20 minutes");
  await round("b");
  expect(await round("a")).toBe(true);
});

test("rounds at the same time apply it once", async () => {
  await Promise.all(times(8, () => round("once")));
  expect(await inCode()).toEqual(["once"]);
  expect(await verbs.query("select from sluice.audit where target = 'schedule once'")).toHaveLength(1);
});

test("code takes a name over from the API; the API may pause it, and not change it", async () => {
  const mine = { ...newSchedule, name: "a", cron: "0 5 * * *", paused: false };
  await db.run(putSchedule("me", mine));
  await round("a");
  expect(await inCode()).toEqual(["a"]);
  expect(await db.run(putSchedule("me", mine))).toBe("in_code");
  await db.run(pauseSchedule("me", "a"));
  await round("a", "b");
  expect(
    await verbs.query("select paused_since is not null as paused, cron from sluice.schedule order by name"),
  ).toEqual([
    { paused: true, cron: newSchedule.cron },
    { paused: false, cron: newSchedule.cron },
  ]);
});
