// The shapes of alarms: the notice that targets get, what the admin sees, the test notice, silences.
import * as z from "zod";
import { alarmNames, severities } from "../core/alarms/alarm.ts";
import type { NoticeBody } from "../core/alarms/notice.ts";
import { givenTime, time } from "./jobs.ts";

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
    /** What was seen; null: it is no longer looked at. */
    value: z.number().nullable(),
    threshold: z.number().nullable(),
    since: time,
    summary: z.string(),
    /** Which one: `SLUICE_ENVIRONMENT`, or the host of its public URL, or its database. */
    deployment: z.string(),
    /** Looks closer: a URL where the deployment knows its own, else a path. */
    link: z.string(),
    /** Null: `SLUICE_RUNBOOK_URL` is not set. */
    runbook: z.url().nullable(),
  }),
}) satisfies z.ZodType<NoticeBody>;

export const alarmsResponse = z.object({
  /** Those that are or were bad; what is not here never was. */
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
    }),
  ),
  /** What is looked at. */
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
  silences: z.array(z.object({ alarm: z.string(), until: time })),
  targets: z.array(
    z.object({
      name: z.string(),
      format: z.string(),
      state: z.enum(["ok", "failing", "off"]),
      off_since: time.nullable(),
      failing_since: time.nullable(),
      delivered_at: time.nullable(),
      /** Of its last answer. */
      status: z.int().nullable(),
      error: z.string().nullable(),
      pending_deliveries: z.int(),
    }),
  ),
});
export type AlarmsResponse = z.output<typeof alarmsResponse>;

export const targetName = z.string().regex(/^\P{Cc}{1,100}$/u, "empty, too long, or with control characters");

/** Without a target all of them. */
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

/** A time that is past ends the silence. */
export const silenceRequest = z.strictObject({ alarm: z.enum(alarmNames), until: givenTime });
export const silenceResponse = z.object({ alarm: z.enum(alarmNames), until: time });
