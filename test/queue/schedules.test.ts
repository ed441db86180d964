// Planning slots: a reap round and a visit of the clock plan them, and missed ones are planned in bounded steps, none left out.
import { beforeEach, expect, test } from "vitest";
import * as z from "zod";
import { defineJob } from "../../src/jobs/define.ts";
import { defineSchedule } from "../../src/jobs/define-schedule.ts";
import { createRegistry } from "../../src/jobs/registry.ts";
import { drainQueue } from "../../src/queue/drain/drain.ts";
import { reap, reapDue } from "../../src/queue/reap.ts";
import { createTestPorts, roomyBudget } from "../support/ports.ts";
import { scheduleVerbsOf } from "../support/schedules.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { times, verbsOf } from "../support/verbs.ts";

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
  // No time passes, because a step also ends after some seconds.
  const { steps } = await reap({ ...ports, clock: { ...ports.clock, nowMs: () => 0 } });
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

test("two versions of a deployment that plan and fire the same slots make one job of each", async () => {
  const tick = defineJob("tick", { payload: z.object({ version: z.number() }), run: () => {} });
  const deployments = [1, 2].map((version) => {
    const schedule = defineSchedule("tick", { cron: "* * * * * *", job: tick, payload: { version } });
    return { ...ports, registry: createRegistry([tick], [], [schedule]) };
  });
  for (const deployment of deployments) await reap(deployment);
  await verbs.query("delete from sluice.scheduled");
  await verbs.query(
    "update sluice.schedule set planned_until = now() - interval '1 minute', refill_at = now()",
  );
  const drain = (deployment: (typeof deployments)[number]) =>
    drainQueue(deployment, { queue: "default", budget: roomyBudget, worker: crypto.randomUUID() });
  await Promise.all(
    deployments.flatMap((deployment) => [
      ...times(2, () => reap(deployment)),
      ...times(4, () => reap(deployment).then(() => drain(deployment))),
    ]),
  );
  const fired = await verbs.query<{ jobs: number; slots: number; span: number; version: number }>(
    `select count(*)::int as jobs, count(distinct schedule ->> 'slot')::int as slots, max(payload ->> 'version') as version,
            extract(epoch from max((schedule ->> 'slot')::timestamptz) - min((schedule ->> 'slot')::timestamptz))::int as span
     from sluice.jobs where schedule is not null`,
  );
  const [{ jobs, slots, span } = { jobs: 0, slots: 0, span: 0 }] = fired;
  expect(fired).toMatchObject([{ version: "2" }]);
  expect(slots).toBeGreaterThanOrEqual(60);
  expect([jobs, span + 1]).toEqual([slots, slots]); // one for each second, and none is left out
});
