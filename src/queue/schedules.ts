// Keeps the next slots of all schedules in the database, and the schedules in code as the newest deployment has them. Firing a slot
// needs none of this: a claim does it.
import { describeError } from "../core/database-errors.ts";
import { planSlots as computeSlots, type SlotPlan } from "../core/policy/slots.ts";
import type { NewSchedule } from "../core/schedule.ts";
import { applyCodeSchedules, planSlots, schedulesToPlan } from "../core/sql/index.ts";
import type { ScheduleToPlan } from "../core/sql/plan-slots.ts";
import type { Ports } from "./ports.ts";

/** Computing ten slots takes about a millisecond. */
const schedulesPerCall = 100;
/** Missed slots in one call, shared by its schedules: about a second of computing. */
const missedPerCall = 10_000;
const maxMs = 5_000;

/** A step of the reap round. Adds what it did to `did`. It sends two statements, and at most `calls` more. */
export async function keepSchedules(
  ports: Ports,
  did: unknown[],
  { calls }: { calls: number },
): Promise<{ unused: number; hasMore: boolean }> {
  const { schedules } = ports.registry;
  const checksum = schedules && (await checksumOf(schedules));
  const endMs = ports.clock.nowMs() + maxMs;
  for (let unused = calls; ; unused -= 2) {
    const toPlan = await ports.db.run(schedulesToPlan({ limit: schedulesPerCall, checksum }));
    let isComplete = false;
    if (toPlan.apply && schedules && checksum) {
      did.push(await ports.db.run(applyCodeSchedules(checksum, schedules)));
    } else {
      const plans = await plan(ports, toPlan.schedules);
      if (plans.planned > 0) did.push(plans.planned);
      isComplete = plans.isComplete && toPlan.schedules.length < schedulesPerCall;
    }
    if (isComplete || unused < 2 || ports.clock.nowMs() >= endMs) return { unused, hasMore: !isComplete };
  }
}

/** After a change of a schedule: it is among the first that need slots. If this fails, the next round does it. */
export async function planChanged(ports: Ports): Promise<void> {
  const { schedules } = await ports.db.run(schedulesToPlan({ limit: schedulesPerCall }));
  await plan(ports, schedules);
}

/** It is not complete if a schedule has missed more slots than fit into one plan. */
async function plan(
  ports: Ports,
  schedules: readonly ScheduleToPlan[],
): Promise<{ planned: number; isComplete: boolean }> {
  if (schedules.length === 0) return { planned: 0, isComplete: true };
  const maxMissed = Math.floor(missedPerCall / schedules.length);
  const plans = schedules.map((schedule) => ({
    ...schedule,
    ...computePlan(ports, schedule, { maxMissed }),
  }));
  const isComplete = plans.every(({ refillMs, nowMs }) => refillMs > nowMs);
  return { planned: await ports.db.run(planSlots(plans)), isComplete };
}

/** A zone that was known once may be unknown to another version of the platform. The others are planned all the same. */
function computePlan(ports: Ports, schedule: ScheduleToPlan, options: { maxMissed: number }): SlotPlan {
  try {
    return computeSlots(schedule, options);
  } catch (error) {
    const { cron, timeZone: time_zone } = schedule;
    ports.log.error("slots not computed", { cron, time_zone, ...describeError(error) });
    return { slotsMs: [], refillMs: schedule.nowMs + 3_600_000 };
  }
}

async function checksumOf(schedules: readonly NewSchedule[]): Promise<string> {
  const sorted = schedules.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const bytes = new TextEncoder().encode(JSON.stringify(sorted));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
