// The operations for schedules. A viewer may call those that only read.
import { bodyLimits } from "./body-limits.ts";
import type { Operation } from "./operation.ts";
import {
  deleteScheduleResponse,
  runScheduleResponse,
  scheduleRequest,
  scheduleResponse,
  schedulesQuery,
  schedulesResponse,
} from "./schedules.ts";

const adminsOnly = [] as const;
const viewers = ["viewer"] as const;
const path = "/v1/schedules/{name}";

export const scheduleOperations = {
  putSchedule: {
    method: "put",
    path,
    summary: "Make a schedule, or replace one that was made here",
    roles: adminsOnly,
    body: { schema: scheduleRequest, maxBytes: bodyLimits.job },
    answers: { 201: scheduleResponse, 200: scheduleResponse },
    problems: [409],
  },
  listSchedules: {
    method: "get",
    path: "/v1/schedules",
    summary: "List schedules by name, with their next slots",
    roles: viewers,
    query: schedulesQuery,
    answers: { 200: schedulesResponse },
  },
  getSchedule: {
    method: "get",
    path,
    summary: "Get a schedule, with its next slots",
    roles: viewers,
    answers: { 200: scheduleResponse },
    problems: [404],
  },
  deleteSchedule: {
    method: "delete",
    path,
    summary: "Delete a schedule. The jobs that it has made stay",
    roles: adminsOnly,
    answers: { 200: deleteScheduleResponse },
    problems: [404],
  },
  pauseSchedule: {
    method: "post",
    path: `${path}/pause`,
    summary: "Pause a schedule: its slots make no jobs, and do not count as missed",
    roles: adminsOnly,
    answers: { 200: scheduleResponse },
    problems: [404],
  },
  resumeSchedule: {
    method: "post",
    path: `${path}/resume`,
    summary: "Resume a schedule from the next slot on",
    roles: adminsOnly,
    answers: { 200: scheduleResponse },
    problems: [404],
  },
  runSchedule: {
    method: "post",
    path: `${path}/run`,
    summary: "Make a job of a schedule now. Its slots stay as they are",
    roles: adminsOnly,
    answers: { 201: runScheduleResponse },
    answerHeaders: { Location: "The path of the job." },
    problems: [404],
  },
} satisfies Record<string, Operation>;
