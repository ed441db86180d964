// The shapes of the alarms API: notices to targets, the list of alarms, test notices, silences.
import * as z from "zod";
import { alarmNames, severities } from "../core/alarms/alarm.ts";
import type { NoticeBody } from "../core/alarms/notice.ts";
import { requestTime, time } from "./jobs.ts";
import { page, plainText } from "./pages.ts";

const key = {
  alarm: z.enum(alarmNames),
  queue: z.string().nullable(),
  job_type: z.string().nullable(),
};

/** The body of a generic notice, sent as a Standard Webhooks request. */
export const noticeBody = z.object({
  type: z.enum(["alarm.firing", "alarm.resolved", "alarm.test"]),
  timestamp: time,
  data: z.object({
    ...key,
    alarm: z.enum([...alarmNames, "test"]),
    severity: z.enum(severities),
    /** Null if the alarm is no longer observed. */
    value: z.number().nullable(),
    threshold: z.number().nullable(),
    since: time,
    summary: z.string(),
    /** `SLUICE_ENVIRONMENT`, or else the host of the public URL, or else the database. */
    deployment: z.string(),
    /** Where to see the details. It is a URL if `SLUICE_PUBLIC_URL` is set, else a path. */
    link: z.string(),
    /** Null if `SLUICE_RUNBOOK_URL` is not set. */
    runbook: z.url().nullable(),
  }),
}) satisfies z.ZodType<NoticeBody>;

export const alarmsResponse = z.object({
  /** Alarms that have or had a bad round. */
  alarms: z.array(
    z.object({
      ...key,
      state: z.enum(["ok", "pending", "firing"]),
      severity: z.enum(severities),
      value: z.number().nullable(),
      threshold: z.number(),
      since: time,
      changed_at: time,
      summary: z.string(),
      link: z.string(),
      runbook: z.url().nullable(),
      /** While an admin's silence lasts, no notices are sent. The state goes on. */
      silenced_until: time.nullable(),
    }),
  ),
  /** The rules in effect. */
  rules: z.array(
    z.object({
      ...key,
      enabled: z.boolean(),
      threshold: z.number(),
      window_minutes: z.number(),
      for_rounds: z.int(),
      of_rounds: z.int(),
      clear_rounds: z.int(),
      severity: z.enum(severities),
      repeat_minutes: z.number(),
      silenced_until: time.nullable(),
    }),
  ),
  silences: z.array(
    z.object({ alarm: z.string(), until: time, actor: z.string().nullable(), reason: z.string().nullable() }),
  ),
  targets: z.array(
    z.object({
      name: z.string(),
      format: z.string(),
      state: z.enum(["ok", "failing", "off"]),
      off_since: time.nullable(),
      failing_since: time.nullable(),
      delivered_at: time.nullable(),
      /** The status of its last answer. */
      status: z.int().nullable(),
      error: z.string().nullable(),
      pending_deliveries: z.int(),
    }),
  ),
});
export type AlarmsResponse = z.output<typeof alarmsResponse>;

export const targetName = z
  .string()
  .regex(/^\P{Cc}{1,100}$/u, "must have 1 to 100 characters and no control characters");

/** Without a target, the notice goes to all targets. */
export const testNoticeRequest = z.strictObject({ target: targetName.optional() });
export const testNoticeResponse = z.object({
  targets: z.array(
    z.object({
      target: z.string(),
      delivered: z.boolean(),
      status: z.int().nullable(),
      error: z.string().nullable(),
      ms: z.number(),
    }),
  ),
});
export type TestNoticeResponse = z.output<typeof testNoticeResponse>;

/** A time in the past ends the silence. */
export const silenceRequest = z.strictObject({
  alarm: z.enum(alarmNames),
  until: requestTime,
  reason: plainText.max(1000).optional(),
});
export const silenceResponse = z.object({ alarm: z.enum(alarmNames), until: time });

/** For how long, or until when. */
export const silenceOneRequest = z
  .strictObject({
    until: requestTime.optional(),
    minutes: z.number().positive().max(525_600).optional(),
    reason: plainText.max(1000).optional(),
  })
  .refine(({ until, minutes }) => (until === undefined) !== (minutes === undefined), {
    path: ["minutes"],
    message: "give either until or minutes",
  });
export const unsilenceRequest = z.strictObject({ reason: plainText.max(1000).optional() });
export const silenceOneResponse = z.object({ alarm: z.enum(alarmNames), silenced_until: time.nullable() });

export const alarmHistoryQuery = z.strictObject(page);
/** What happened to alarms, also while they were silenced. It is kept for as long as deliveries are. */
export const alarmHistoryPage = z.object({
  events: z.array(
    z.object({
      id: z.string(),
      at: time,
      alarm: z.string(),
      queue: z.string().nullable(),
      job_type: z.string().nullable(),
      event: z.enum(["firing", "resolved", "silenced", "unsilenced"]),
      /** Of firing and resolved: the alarm at that time. */
      severity: z.enum(severities).nullable(),
      value: z.number().nullable(),
      threshold: z.number().nullable(),
      since: time.nullable(),
      summary: z.string().nullable(),
      /** Of silenced and unsilenced: until when, who did it, and why. */
      until: time.nullable(),
      actor: z.string().nullable(),
      reason: z.string().nullable(),
    }),
  ),
  next_cursor: z.string().nullable(),
});
export type AlarmHistoryPage = z.output<typeof alarmHistoryPage>;

export const deliveryPage = z.object({
  deliveries: z.array(
    z.object({
      /** The webhook-id. */
      id: z.uuid(),
      target: z.string(),
      alarm: z.string(),
      queue: z.string().nullable(),
      job_type: z.string().nullable(),
      /** alarm.firing or alarm.resolved. */
      type: z.string(),
      created_at: time,
      state: z.enum(["pending", "delivered", "given_up"]),
      tries: z.int(),
      next_try_at: time.nullable(),
      ended_at: time.nullable(),
      /** The status of the last answer. */
      status: z.int().nullable(),
      error: z.string().nullable(),
    }),
  ),
  next_cursor: z.string().nullable(),
});
export type DeliveryPage = z.output<typeof deliveryPage>;
