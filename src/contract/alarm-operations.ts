// The operations on single alarms, and on what has happened to alarms. The others are in admin-operations.ts.
import {
  alarmHistoryPage,
  alarmHistoryQuery,
  deliveryPage,
  silenceOneRequest,
  silenceOneResponse,
  unsilenceRequest,
} from "./alarms.ts";
import { bodyLimits } from "./body-limits.ts";
import type { Operation } from "./operation.ts";

export const alarmOperations = {
  silenceOneAlarm: {
    method: "post",
    path: "/v1/admin/alarms/{alarm}/silence",
    summary: "Silence an alarm for some minutes or until a time. Its state goes on, and no notices are sent",
    roles: [],
    body: { schema: silenceOneRequest, maxBytes: bodyLimits.alarm },
    answers: { 200: silenceOneResponse },
    problems: [404],
  },
  unsilenceAlarm: {
    method: "post",
    path: "/v1/admin/alarms/{alarm}/unsilence",
    summary: "End the silence of an alarm",
    roles: [],
    body: { schema: unsilenceRequest, maxBytes: bodyLimits.alarm, isOptional: true },
    answers: { 200: silenceOneResponse },
    problems: [404],
  },
  listAlarmHistory: {
    method: "get",
    path: "/v1/admin/alarms/history",
    summary: "List when alarms fired, were resolved and were silenced, newest first",
    roles: ["viewer"],
    query: alarmHistoryQuery,
    answers: { 200: alarmHistoryPage },
  },
  listDeliveries: {
    method: "get",
    path: "/v1/admin/alarms/deliveries",
    summary: "List the notices to targets and what became of them, newest first",
    roles: ["viewer"],
    query: alarmHistoryQuery,
    answers: { 200: deliveryPage },
  },
} as const satisfies Record<string, Operation>;
