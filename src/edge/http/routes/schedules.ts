// Schedules: put, get, list, delete, pause, resume, run now.
import type { Context } from "hono";
import * as z from "zod";
import type { ScheduleResponse, SchedulesResponse } from "../../../contract/schedules.ts";
import { describeError } from "../../../core/database-errors.ts";
import { SluiceError } from "../../../core/errors.ts";
import { jobLimits } from "../../../core/job-options.ts";
import { faultOfTimes } from "../../../core/policy/slots.ts";
import type { Schedule } from "../../../core/schedule.ts";
import * as sql from "../../../core/sql/index.ts";
import type { Statement } from "../../../core/sql/statement.ts";
import { planChanged } from "../../../queue/schedules.ts";
import { badField, findDefinition, startDrainsOf } from "../accept-jobs.ts";
import type { AppEnv } from "../app-env.ts";
import { decodeCursor, encodeCursor } from "../codec/cursor.ts";
import type { Handlers } from "../operation-routes.ts";

export const putSchedule: Handlers["putSchedule"] = async (context, { body }) => {
  const name = context.req.param("name") ?? "";
  if (!jobLimits.namePattern.test(name)) throw badField("name", jobLimits.nameRule);
  const { time_zone: timeZone, queue, ...rest } = body;
  const fault = faultOfTimes({ cron: body.cron, timeZone });
  if (fault) throw badField(fault.field, fault.message);
  const definition = findDefinition(context, body);
  const { ports } = context.env;
  const schedule = {
    ...{ ...rest, name, timeZone, queue: queue ?? definition.queue },
    maxAttempts: definition.maxAttempts,
  };
  const answer = await ports.db.run(sql.putSchedule(context.get("caller").actor, schedule));
  if (answer === "in_code")
    throw new SluiceError(
      "conflict",
      `the schedule "${name}" is defined in code: change it there, or pause it`,
    );
  await planSoon(context);
  return context.json(toScheduleResponse(await findSchedule(context)), answer === "created" ? 201 : 200);
};

export const listSchedules: Handlers["listSchedules"] = async (context, { query: { cursor, limit } }) => {
  const after = cursor === undefined ? undefined : decodeCursor(cursor, z.string().max(63));
  const schedules = await context.env.ports.db.run(sql.listSchedules({ after, limit }));
  const last = schedules.length === limit ? schedules.at(-1) : undefined;
  const body: SchedulesResponse = {
    schedules: schedules.map(toScheduleResponse),
    next_cursor: last ? encodeCursor(last.name) : null,
  };
  return context.json(body);
};

export const getSchedule: Handlers["getSchedule"] = async (context) =>
  context.json(toScheduleResponse(await findSchedule(context)));

export const deleteSchedule: Handlers["deleteSchedule"] = async (context) => {
  const name = await change(context, sql.deleteSchedule);
  return context.json({ name, deleted: true });
};

export const pauseSchedule: Handlers["pauseSchedule"] = async (context) => {
  await change(context, sql.pauseSchedule);
  return context.json(toScheduleResponse(await findSchedule(context)));
};

export const resumeSchedule: Handlers["resumeSchedule"] = async (context) => {
  await change(context, sql.resumeSchedule);
  await planSoon(context);
  return context.json(toScheduleResponse(await findSchedule(context)));
};

export const runSchedule: Handlers["runSchedule"] = async (context) => {
  const { name, queue } = await findSchedule(context);
  const jobId = await context.env.ports.db.run(sql.runSchedule(context.get("caller").actor, name));
  if (jobId === null) throw noSuchSchedule(name);
  startDrainsOf(context, [queue]);
  return context.json({ name, job_id: jobId }, 201, { location: `/v1/jobs/${jobId}` });
};

/** The change is committed: if the slots cannot be planned now, the next reap round plans them. The clock looks for the first. */
async function planSoon(context: Context<AppEnv>): Promise<void> {
  const { ports } = context.env;
  await planChanged(ports).catch((error) => ports.log.error("slots not planned", describeError(error)));
  ports.wakeIn(0);
}

async function change(
  context: Context<AppEnv>,
  statement: (actor: string, name: string) => Statement<boolean>,
): Promise<string> {
  const name = context.req.param("name") ?? "";
  if (!(await context.env.ports.db.run(statement(context.get("caller").actor, name))))
    throw noSuchSchedule(name);
  return name;
}

async function findSchedule(context: Context<AppEnv>): Promise<Schedule> {
  const name = context.req.param("name") ?? "";
  const schedule = await context.env.ports.db.run(sql.findSchedule(name));
  if (!schedule) throw noSuchSchedule(name);
  return schedule;
}

function noSuchSchedule(name: string): SluiceError {
  return new SluiceError("not_found", `there is no schedule "${name}"`);
}

function toScheduleResponse(schedule: Schedule): ScheduleResponse {
  const { timeZone, maxAttempts: _, nextSlots, lastSlot, lastJobId, ...rest } = schedule;
  return {
    ...rest,
    time_zone: timeZone,
    next_slots: nextSlots.map((slot) => slot.toISOString()),
    last_slot: lastSlot?.toISOString() ?? null,
    last_job_id: lastJobId,
  };
}
