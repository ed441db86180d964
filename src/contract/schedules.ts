// The shapes of schedules.
import * as z from "zod";
import { missedRules, overlapRules } from "../core/policy/slots.ts";
import { name, time } from "./jobs.ts";
import { jsonObject } from "./json.ts";

export const scheduleRequest = z.strictObject({
  cron: z.string().max(200).describe("Five fields, or six with seconds first."),
  time_zone: z.string().max(100).default("UTC").describe("An IANA time zone."),
  type: name,
  payload: jsonObject.default({}),
  queue: name.nullable().default(null).describe("Default: the queue of the type."),
  priority: z.int().min(0).max(9).default(5),
  missed: z
    .enum(missedRules)
    .default("last")
    .describe(
      "What happens to slots that nobody fired within 90 seconds: none of them makes a job, the last one does, or all do.",
    ),
  overlap: z
    .enum(overlapRules)
    .default("allow")
    .describe("skip: a slot makes no job while the last job of the schedule has not ended."),
  paused: z.boolean().default(false),
});
export type ScheduleRequest = z.output<typeof scheduleRequest>;

export const scheduleResponse = z.object({
  name: z.string(),
  cron: z.string(),
  time_zone: z.string(),
  type: z.string(),
  payload: jsonObject,
  queue: z.string(),
  priority: z.int(),
  missed: z.enum(missedRules),
  overlap: z.enum(overlapRules),
  paused: z.boolean(),
  source: z.enum(["api", "code"]),
  next_slots: z.array(time).describe("The next five. None if it is paused."),
  last_slot: time.nullable().describe("The last one that made a job."),
  last_job_id: z.uuid().nullable(),
});
export type ScheduleResponse = z.output<typeof scheduleResponse>;

export const schedulesQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(100).default(20),
  cursor: z.string().max(200).optional(),
});
export const schedulesResponse = z.object({
  schedules: z.array(scheduleResponse),
  next_cursor: z.string().nullable(),
});
export type SchedulesResponse = z.output<typeof schedulesResponse>;

export const deleteScheduleResponse = z.object({ name: z.string(), deleted: z.literal(true) });
export const runScheduleResponse = z.object({ name: z.string(), job_id: z.uuid() });
