// put, find, list, delete, pause, resume and run a schedule. See migrations/functions/schedules.sql.
import type { JobStatus } from "../job.ts";
import { type NewSchedule, type Schedule, toScheduleFields } from "../schedule.ts";
import { sql } from "./sql.ts";
import { many, one, optional, type Statement } from "./statement.ts";

interface ScheduleRow
  extends Pick<
    Schedule,
    "name" | "cron" | "type" | "payload" | "queue" | "priority" | "missed" | "overlap" | "paused" | "source"
  > {
  time_zone: string;
  max_attempts: number;
  next_slots: string[];
  last_slot: string | null;
  last_job_id: string | null;
}

function decodeSchedule(row: ScheduleRow): Schedule {
  const { time_zone, max_attempts, next_slots, last_slot, last_job_id, ...rest } = row;
  return {
    ...rest,
    timeZone: time_zone,
    maxAttempts: max_attempts,
    nextSlots: next_slots.map((slot) => new Date(slot)),
    lastSlot: last_slot === null ? null : new Date(last_slot),
    lastJobId: last_job_id,
  };
}

/** `in_code`: it is defined in code, and the API may not change it. Its slots have to be planned after that. */
export function putSchedule(
  actor: string,
  schedule: NewSchedule & { paused: boolean },
): Statement<"created" | "changed" | "in_code"> {
  return {
    name: "put schedule",
    isRepeatable: true,
    build: (schema) => sql`
      select ${schema}.put_schedule(
        ${actor}::text, ${schedule.name}::text, ${JSON.stringify(toScheduleFields(schedule))}::text::jsonb
      ) as answer`,
    decode: one((row) => row.answer as "created" | "changed" | "in_code"),
  };
}

export function findSchedule(name: string): Statement<Schedule | undefined> {
  return {
    name: "find schedule",
    isRepeatable: true,
    build: (schema) => sql`select schedule from ${schema}.find_schedules(null, 1, ${name}::text) as schedule`,
    decode: optional((row) => decodeSchedule(row.schedule as ScheduleRow)),
  };
}

/** By name. */
export function listSchedules({
  after,
  limit,
}: {
  after?: string | undefined;
  limit: number;
}): Statement<Schedule[]> {
  return {
    name: "list schedules",
    isRepeatable: true,
    build: (schema) => sql`
      select schedule from ${schema}.find_schedules(${after ?? null}::text, ${limit}::int) as schedule`,
    decode: many((row) => decodeSchedule(row.schedule as ScheduleRow)),
  };
}

export interface ScheduleOutcome {
  slot: Date;
  jobId: string;
  /** Null: the job is no longer stored. */
  status: JobStatus | null;
}

/** What became of the last ten jobs of each, oldest first. By name, the same schedules as `listSchedules` has. */
export function scheduleOutcomes({
  after,
  limit,
}: {
  after?: string | undefined;
  limit: number;
}): Statement<{ name: string; outcomes: ScheduleOutcome[] }[]> {
  return {
    name: "schedule outcomes",
    isRepeatable: true,
    build: (schema) => sql`
      select name, outcomes from ${schema}.schedule_outcomes(${after ?? null}::text, ${limit}::int)`,
    decode: many(({ name, outcomes }) => ({
      name: String(name),
      outcomes: (outcomes as { slot: string; job_id: string; status: JobStatus | null }[]).map(
        ({ slot, job_id, status }) => ({ slot: new Date(slot), jobId: job_id, status }),
      ),
    })),
  };
}

/** These three answer whether there is such a schedule. */
export function deleteSchedule(actor: string, name: string): Statement<boolean> {
  return changeSchedule("delete", actor, name);
}

export function pauseSchedule(actor: string, name: string): Statement<boolean> {
  return changeSchedule("pause", actor, name);
}

export function resumeSchedule(actor: string, name: string): Statement<boolean> {
  return changeSchedule("resume", actor, name);
}

function changeSchedule(
  verb: "delete" | "pause" | "resume",
  actor: string,
  name: string,
): Statement<boolean> {
  return {
    name: `${verb} schedule`,
    isRepeatable: verb !== "delete", // a second one would find nothing
    build: (schema) =>
      sql`select ${schema}.${sql.raw(`${verb}_schedule`)}(${actor}::text, ${name}::text) as found`,
    decode: one((row) => row.found === true),
  };
}

/** The id of the new job. Null if there is no such schedule. */
export function runSchedule(actor: string, name: string): Statement<string | null> {
  return {
    name: "run schedule",
    isRepeatable: false, // each run makes a job
    build: (schema) => sql`select ${schema}.run_schedule(${actor}::text, ${name}::text) as job_id`,
    decode: one((row) => row.job_id as string | null),
  };
}
