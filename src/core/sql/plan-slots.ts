// schedules to plan, plan slots. See migrations/functions/plan-slots.sql.
import type { PlanFrom, SlotPlan } from "../policy/slots.ts";
import { sql } from "./sql.ts";
import { one, type Statement } from "./statement.ts";

export interface ScheduleToPlan extends PlanFrom {
  number: number;
  /** Up to where its slots are planned, to be shown again: exact to a microsecond. */
  from: string;
}

export interface ToPlan {
  /** The schedules in the caller's code are the newest, and are not applied yet. */
  apply: boolean;
  schedules: ScheduleToPlan[];
}

/** The checksum is that of the schedules in code, if the deployment has any. */
export function schedulesToPlan({
  limit,
  checksum,
}: {
  limit: number;
  checksum?: string | null;
}): Statement<ToPlan> {
  return {
    name: "schedules to plan",
    isRepeatable: true,
    build: (schema) => sql`
      select ${schema}.schedules_to_plan(${limit}::int, ${checksum ?? null}::text) as answer`,
    decode: one(({ answer }) => {
      const { apply, schedules } = answer as { apply: boolean; schedules: ToPlanRow[] };
      return { apply, schedules: schedules.map(decodeRow) };
    }),
  };
}

interface ToPlanRow extends Pick<ScheduleToPlan, "number" | "cron" | "missed" | "from"> {
  time_zone: string;
  from_ms: number;
  now_ms: number;
}

function decodeRow({ time_zone, from_ms, now_ms, ...rest }: ToPlanRow): ScheduleToPlan {
  return { ...rest, timeZone: time_zone, fromMs: from_ms, nowMs: now_ms };
}

/** Answers how many of them were planned. Others have been planned or changed meanwhile. */
export function planSlots(
  plans: readonly (Pick<ScheduleToPlan, "number" | "from"> & SlotPlan)[],
): Statement<number> {
  const packed = plans.map(({ number, from, slotsMs, refillMs }) => ({
    number,
    from,
    slots_ms: slotsMs,
    refill_ms: refillMs,
  }));
  return {
    name: "plan slots",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.plan_slots(${JSON.stringify(packed)}::text::jsonb) as planned`,
    decode: one((row) => row.planned as number),
  };
}
