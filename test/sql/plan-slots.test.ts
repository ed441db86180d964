// Planning slots: of two planners one writes, a plan of what has changed meanwhile does nothing, and only low lists are planned.
import { beforeEach, expect, test } from "vitest";
import { planSlots, schedulesToPlan } from "../../src/core/sql/index.ts";
import { scheduleVerbsOf } from "../support/schedules.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { only, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const verbs = verbsOf(db);
const schedules = scheduleVerbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const toPlan = async () => (await db.run(schedulesToPlan({ limit: 10 }))).schedules;
const planOf = (schedule: Awaited<ReturnType<typeof toPlan>>[number]) => ({
  ...schedule,
  slotsMs: times(10, (n) => (Math.floor(schedule.nowMs / 1000) + n + 1) * 1000),
  refillMs: schedule.nowMs + 60_000,
});

test("a new schedule needs slots, and a planned one does not until its time has come", async () => {
  await schedules.put();
  const plan = planOf(only(await toPlan()));
  expect(await db.run(planSlots([plan]))).toBe(1);
  expect(await toPlan()).toEqual([]);
  expect((await schedules.find()).nextSlots).toEqual(plan.slotsMs.slice(0, 5).map((ms) => new Date(ms)));
  expect(await verbs.query("select sluice.next_plan_at() as at")).toEqual([{ at: new Date(plan.refillMs) }]);
  await verbs.query("update sluice.schedule set refill_at = now()");
  expect(only(await toPlan()).fromMs).toBe(plan.slotsMs.at(-1));
});

test("of planners at the same time one writes", async () => {
  await schedules.put();
  const plan = planOf(only(await toPlan()));
  const planned = await Promise.all(times(8, () => db.run(planSlots([plan]))));
  expect(planned.filter((count) => count === 1)).toHaveLength(1);
  expect(await verbs.count("scheduled")).toBe(10);
});

test("a plan for what was changed or paused meanwhile does nothing", async () => {
  await schedules.put();
  const [early] = await toPlan();
  await schedules.put({ cron: "0 3 * * *" });
  if (early) expect(await db.run(planSlots([planOf(early)]))).toBe(0);
  const [late] = await toPlan();
  await schedules.put({ cron: "0 3 * * *", paused: true });
  if (late) expect(await db.run(planSlots([planOf(late)]))).toBe(0);
  expect(await verbs.count("scheduled")).toBe(0);
});

test("late slots are reached, though the cursor has passed their time", async () => {
  await verbs.enqueueOne();
  await verbs.claim();
  for (let n = 0; n < 3; n++) await verbs.query("select sluice.advance_cursors()");
  await schedules.put({ missed: "all" });
  await schedules.plan(-200, -100);
  await verbs.query("select sluice.advance_cursors()");
  await verbs.query("select sluice.advance_cursors()");
  const jobs = [...(await verbs.claim()), ...(await verbs.claim())];
  expect(jobs).toHaveLength(2);
});

test("only the ten newest runs are kept", async () => {
  await schedules.put();
  await schedules.plan(...Array.from({ length: 12 }, (_, n) => n - 12));
  while ((await verbs.claim()).length > 0);
  expect(await verbs.count("schedule_run")).toBe(12);
  const { lastSlot } = await schedules.find();
  await verbs.query("update sluice.schedule set refill_at = now()");
  await schedules.plan(60);
  expect(await verbs.count("schedule_run")).toBe(10);
  expect((await schedules.find()).lastSlot).toEqual(lastSlot);
});

test("an id says which slot of which schedule it is, in order, above the ids of jobs", async () => {
  const rows = await verbs.query(`
    select sluice.schedule_of_slot(id)::int as number, sluice.time_of_slot(id) = at as same, id > sluice.new_id() as above
    from (select at, sluice.slot_id(n, at) as id
          from generate_series(1, 300, 100) as n, (values (timestamptz '2026-01-01Z'), ('2126-01-01Z')) as slot(at) order by n, at) as slot
    order by id`);
  expect(rows).toEqual([1, 1, 101, 101, 201, 201].map((number) => ({ number, same: true, above: true })));
});
