// A schedule: a name, when it makes a job, and which.
import type { Payload } from "./job.ts";
import type { MissedRule, OverlapRule } from "./policy/slots.ts";

export interface NewSchedule {
  name: string;
  cron: string;
  timeZone: string;
  type: string;
  payload: Payload;
  queue: string;
  priority: number | null;
  maxAttempts: number;
  missed: MissedRule;
  overlap: OverlapRule;
}

export interface Schedule extends Omit<NewSchedule, "priority"> {
  priority: number;
  paused: boolean;
  source: "api" | "code";
  /** The next five. None if it is paused. */
  nextSlots: Date[];
  /** The last one that made a job. */
  lastSlot: Date | null;
  lastJobId: string | null;
}

/** The names of the fields in the database. */
export function toScheduleFields(schedule: NewSchedule & { paused?: boolean }): object {
  const { timeZone, maxAttempts, ...rest } = schedule;
  return { ...rest, time_zone: timeZone, max_attempts: maxAttempts };
}
