// Schedules for tests: makes one, plans its slots as the Worker does, and lets time pass for them.
import type { NewSchedule, Schedule } from "../../src/core/schedule.ts";
import { findSchedule, planSlots, putSchedule, schedulesToPlan } from "../../src/core/sql/index.ts";
import type { TestDatabase } from "./test-database.ts";

export const newSchedule: NewSchedule = {
  name: "nightly",
  cron: "0 2 * * *",
  timeZone: "UTC",
  type: "echo",
  payload: { a: 1 },
  queue: "default",
  priority: null,
  maxAttempts: 5,
  missed: "last",
  overlap: "allow",
};

export interface ScheduleVerbs {
  put(fields?: Partial<NewSchedule> & { paused?: boolean }): Promise<Schedule>;
  find(name?: string): Promise<Schedule>;
  /** Plans slots this many seconds from now for all schedules that need some. They are whole seconds. */
  plan(...seconds: number[]): Promise<number>;
}

export function scheduleVerbsOf(db: TestDatabase): ScheduleVerbs {
  const find = async (name = newSchedule.name) => {
    const schedule = await db.run(findSchedule(name));
    if (!schedule) throw new Error(`there is no schedule ${name}`);
    return schedule;
  };
  return {
    find,
    put: async ({ paused = false, ...fields } = {}) => {
      await db.run(putSchedule("me", { ...newSchedule, ...fields, paused }));
      return find(fields.name);
    },
    plan: async (...seconds) => {
      await db.pool.query(
        "update sluice.schedule set planned_until = planned_until - interval '1 day' where refill_at <= now()",
      );
      const { schedules } = await db.run(schedulesToPlan({ limit: 100_000 }));
      const plans = schedules.map(({ number, from, nowMs }) => ({
        ...{ number, from, refillMs: nowMs + 86_400_000 },
        slotsMs: seconds.map((second) => (Math.floor(nowMs / 1000) + second) * 1000),
      }));
      return db.run(planSlots(plans));
    },
  };
}
