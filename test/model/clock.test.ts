// Random delays, retries, slots and debounced calls on a deployment that the clock alone drives, with lost replies: no job that was
// acknowledged starts later than promised, and each slot makes exactly one job. fast-check shrinks a failure and prints its seed.
import { deepStrictEqual, ok } from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import type { NewJob } from "../../src/core/job.ts";
import { planSlots, putSchedule, schedulesToPlan } from "../../src/core/sql/index.ts";
import { enqueue } from "../../src/queue/enqueue.ts";
import { differences } from "../support/balance.ts";
import { newJob } from "../support/jobs.ts";
import { createQuickEmpty } from "../support/quick-empty.ts";
import { newSchedule } from "../support/schedules.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { verbsOf } from "../support/verbs.ts";
import { type ClockWorld, createClockWorld, lateAfterLossMs } from "./clock-world.ts";

const db = useTestDatabase();
const verbs = verbsOf(db);
const runs = Number(process.env.SLUICE_MODEL_RUNS ?? 150);
/** With nothing lost. Two looks are 0.2 s apart, and the machine may be busy. */
const lateMs = 3_000;

interface Promised {
  id: string;
  dueMs: number;
}

interface Call {
  waitMs: number;
  delaySeconds: number;
  fails: number;
  debounce: { key: string; mode: "first" | "last"; seconds: number } | null;
}

const anyCall: fc.Arbitrary<Call> = fc.record({
  waitMs: fc.oneof(fc.integer({ min: 0, max: 3000 }), fc.integer({ min: 0, max: 100_000 })),
  delaySeconds: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 200 })),
  fails: fc.constantFrom(0, 0, 1, 2),
  debounce: fc.option(
    fc.record({
      key: fc.constantFrom("a", "b"),
      mode: fc.constantFrom("first" as const, "last" as const),
      seconds: fc.integer({ min: 1, max: 60 }),
    }),
  ),
});
const anySlots = fc.uniqueArray(fc.integer({ min: 1, max: 300 }), { maxLength: 6 });
/** Which statements and calls of the clock are lost, in order. */
const anyLosses = fc.oneof(
  fc.constant<boolean[]>([]),
  fc.array(fc.constantFrom(true, false, false, false, false), { maxLength: 60 }),
);

/** As a client does: until it has an answer it asks again, with the same idempotency key. */
async function call(world: ClockWorld, given: Call, n: number): Promise<Promised> {
  const { delaySeconds, debounce, fails } = given;
  const job: NewJob = newJob({
    ...{ type: "work", payload: { fails }, maxAttempts: 20, idempotencyKey: `call ${n}` },
    ...(debounce ? { debounce } : { delaySeconds }),
  });
  for (;;) {
    world.holdAwake();
    try {
      const { id, scheduledAt } = await enqueue(world.ports, job);
      const waitMs = scheduledAt.getTime() - Date.now();
      world.ports.wakeIn(Math.max(waitMs, 0));
      return { id, dueMs: world.nowMs() + waitMs };
    } catch {
      await world.passUntil(world.nowMs() + 1000);
    }
  }
}

async function planAll(world: ClockWorld, offsets: readonly number[]): Promise<void> {
  await db.run(
    putSchedule("me", { ...newSchedule, type: "work", payload: {}, maxAttempts: 20, paused: false }),
  );
  const { schedules } = await db.run(schedulesToPlan({ limit: 1 }));
  const plans = schedules.map((schedule) => {
    const nextSecond = Math.floor(schedule.nowMs / 1000) + 1;
    const slotsMs = offsets.toSorted((a, b) => a - b).map((offset) => (nextSecond + offset) * 1000);
    return { ...schedule, slotsMs, refillMs: schedule.nowMs + 86_400_000 };
  });
  await db.run(planSlots(plans));
  world.holdAwake();
  world.ports.wakeIn(0);
}

/** The promise of the first start. A retry follows 7 s after a failure; that it comes is checked by the end. */
function checkPromises(world: ClockWorld, promised: readonly Promised[]): void {
  const mostMs = lateMs + world.lost() * lateAfterLossMs;
  for (const { id, dueMs } of promised) {
    const first = world.started.find((start) => start.id === id);
    ok(first, "a job was acknowledged and never started");
    ok(
      first.atMs - dueMs <= mostMs,
      `a job started ${first.atMs - dueMs} ms late, ${world.lost()} were lost`,
    );
  }
  for (const start of world.started.filter(({ attempt }) => attempt > 1)) {
    const before = world.started.find(({ id, attempt }) => id === start.id && attempt === start.attempt - 1);
    const lastMs = before?.atMs ?? Number.NEGATIVE_INFINITY;
    ok(!before || start.atMs - lastMs <= 7_000 + mostMs, `a retry came ${start.atMs - lastMs} ms later`);
  }
}

test("no acknowledged job starts later than promised, and each slot makes one job", {
  timeout: 240_000,
}, async () => {
  const property = fc
    .asyncProperty(fc.array(anyCall, { maxLength: 8 }), anySlots, anyLosses, async (calls, slots, losses) => {
      const left = [...losses];
      const world = createClockWorld(db, () => left.shift() ?? false);
      await planAll(world, slots);
      const promised: Promised[] = [];
      for (const [n, given] of calls.entries()) {
        await world.passUntil(world.nowMs() + given.waitMs);
        promised.push(await call(world, given, n));
      }
      await world.passUntil(world.nowMs() + 400_000 + (1 + world.lost()) * lateAfterLossMs);
      const states = await verbs.query<{ id: string; status: string; superseded_by: string | null }>(
        "select id, status, superseded_by from sluice.jobs",
      );
      const replaced = new Set(states.filter((job) => job.superseded_by !== null).map(({ id }) => id));
      deepStrictEqual(
        states.filter(({ id, status }) => status !== (replaced.has(id) ? "cancelled" : "completed")),
        [],
      );
      checkPromises(
        world,
        promised.filter(({ id }) => !replaced.has(id)),
      );
      const made = await verbs.query<{ slot: string }>(
        "select schedule ->> 'slot' as slot from sluice.job where schedule is not null",
      );
      deepStrictEqual(
        [made.length, new Set(made.map(({ slot }) => slot)).size],
        [slots.length, slots.length],
      );
      deepStrictEqual(await verbs.count("scheduled"), 0);
      deepStrictEqual(await differences(verbs), []);
    })
    .beforeEach(createQuickEmpty(db.pool));
  await fc.assert(property, { numRuns: runs });
});
