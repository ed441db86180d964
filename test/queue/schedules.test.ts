// Planning slots: a reap round and a visit of the clock plan them, and missed ones are planned in bounded steps, none left out.
import { beforeEach, expect, test } from "vitest";
import * as z from "zod";
import { defineJob } from "../../src/jobs/define.ts";
import { reap, reapDue } from "../../src/queue/reap.ts";
import { createTestPorts } from "../support/ports.ts";
import { scheduleVerbsOf } from "../support/schedules.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const verbs = verbsOf(db);
const schedules = scheduleVerbsOf(db);
const ports = createTestPorts(db, [defineJob("echo", { payload: z.object({}), run: () => {} })]);
beforeEach(() => emptyQueue(db.pool));

const outage = (hours: number) =>
  verbs.query("update sluice.schedule set planned_until = now() - make_interval(hours => $1)", [hours]);
const late = () =>
  verbs.query<{ slots: number; first: number; last: number }>(
    `select count(*)::int as slots, extract(epoch from now() - min(run_at))::int as first,
            extract(epoch from now() - max(run_at))::int as last
     from sluice.scheduled where run_at < now() - interval '90 s'`,
  );

test("all slots of a long outage are planned by `all`, in plans of a bounded size", async () => {
  await schedules.put({ cron: "* * * * * *", missed: "all" });
  await outage(6); // 21,600 slots, of which 90 are not late
  const { steps } = await reap(ports);
  expect(steps.schedules?.did).toEqual([1, 1, 1]);
  const [planned] = await late();
  expect(planned?.slots).toBeGreaterThan(21_500);
  expect(planned?.slots).toBe((planned?.first ?? 0) - (planned?.last ?? 0) + 1);
  expect((await schedules.find()).nextSlots).toHaveLength(5);
});

test("by `last` one slot of it is planned", async () => {
  await schedules.put({ cron: "0 * * * *" });
  await outage(6);
  await reap(ports);
  expect(await late()).toMatchObject([{ slots: 1 }]);
});

test("a visit of the clock plans slots, so schedules go on without crons", async () => {
  await schedules.put();
  expect(await verbs.count("scheduled")).toBe(0);
  await reapDue(ports);
  expect(await verbs.count("scheduled")).toBe(10);
});
