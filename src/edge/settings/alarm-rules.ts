// SLUICE_ALARM_RULES: what differs from the default rules, by alarm; checked field by field.
import * as z from "zod";
import { name } from "../../contract/jobs.ts";
import { weekdays } from "../../core/alarms/active-hours.ts";
import { type AlarmName, type AlarmRule, alarmNames, canary, severities } from "../../core/alarms/alarm.ts";
import { type AlarmOverride, alarmRules } from "../../core/alarms/alarm-defaults.ts";
import { jsonSetting } from "./json-setting.ts";

const clockTime = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$|^24:00$/, "is not a time as 08:00");
const activeHours = z
  .strictObject({
    from: clockTime,
    to: clockTime,
    time_zone: z.string().default("UTC").refine(isTimeZone, "is not a time zone"),
    days: z
      .array(z.enum(weekdays))
      .min(1)
      .default([...weekdays]),
  })
  .transform(({ time_zone: timeZone, ...rest }) => ({ ...rest, timeZone }));

function isTimeZone(timeZone: string): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat("en", { timeZone }));
  } catch {
    return false;
  }
}

const rounds = z.int().min(1).max(60);
const ruleFields = {
  enabled: z.boolean().optional(),
  for_rounds: rounds.optional(),
  of_rounds: rounds.optional(),
  clear_rounds: rounds.optional(),
  grace_minutes: z.number().min(0).max(1440).optional(),
  severity: z.enum(severities).optional(),
  repeat_minutes: z.number().min(1).max(10_080).optional(),
  silenced_until: z.iso.datetime({ offset: true }).optional(),
  active_hours: activeHours.optional(),
};
const above = { above: z.number().min(0).optional() };
/** The look at the queue reaches back an hour. */
const window = { window_minutes: z.int().min(1).max(55).optional() };
const ofQueueAndType = { queue: name.optional(), job_type: name.optional() };
const byPriority = z
  .partialRecord(z.string().regex(/^\d$/, "is not a priority"), z.number().min(0))
  .optional();

const shapes = {
  completion_rate_low: { ...ofQueueAndType, ...window, per_minute_below: z.number().positive().optional() },
  queue_length_high: { ...ofQueueAndType, ...above },
  queue_growing: { ...ofQueueAndType, ...window, ...above },
  oldest_pending_high: { ...ofQueueAndType, ...above, above_by_priority: byPriority },
  job_expired: { ...ofQueueAndType, ...window, ...above },
  dead_letters: { ...ofQueueAndType, ...above },
  breaker_open: { job_type: name.optional(), ...above },
  oldest_transaction: above,
  round_overdue: above,
  enqueue_errors: { ...window, ...above },
  books_unbalanced: above,
  target_failing: above,
  jobs_unreachable: above,
} satisfies Record<AlarmName, z.ZodRawShape>;

/** All fields of all alarms, once each shape was checked. */
interface GivenRule {
  [field: string]: unknown;
  queue?: string | undefined;
  job_type?: string | undefined;
}

const rulesOf = (alarm: AlarmName) =>
  z
    .preprocess(
      (given) => (Array.isArray(given) ? given : [given]),
      z.array(z.strictObject({ ...shapes[alarm], ...ruleFields })).max(100),
    )
    .superRefine((given, context) => checkTogether(alarm, given as GivenRule[], context));

function checkTogether(alarm: AlarmName, given: readonly GivenRule[], context: z.RefinementCtx): void {
  const scopes = given.map(({ queue, job_type }) => `${queue ?? ""}/${job_type ?? ""}`);
  given.forEach((rule, index) => {
    const fault = (message: string) => context.addIssue({ code: "custom", path: [index], message });
    if (scopes.indexOf(scopes[index] ?? "") < index) fault("is a second rule for the same queue and type");
    const isCanary = scopes[index] === "/" || scopes[index] === `${canary.queue}/${canary.type}`;
    if (
      alarm === "completion_rate_low" &&
      !isCanary &&
      rule.enabled !== false &&
      rule.per_minute_below === undefined
    ) {
      fault("needs per_minute_below");
    }
  });
}

const overrides = z.strictObject(
  Object.fromEntries(alarmNames.map((alarm) => [alarm, rulesOf(alarm).optional()])),
);

export const alarmRuleSetting = jsonSetting(overrides).transform((given): AlarmRule[] =>
  alarmRules(
    Object.fromEntries(
      Object.entries(given).map(([alarm, rules]) => [alarm, ((rules ?? []) as GivenRule[]).map(overrideOf)]),
    ),
  ),
);

/** Only what was given: the rest is the default's. */
function overrideOf(given: GivenRule): AlarmOverride {
  const fields: Record<string, unknown> = {
    queue: given.queue,
    jobType: given.job_type,
    isEnabled: given.enabled,
    threshold: given.above ?? given.per_minute_below,
    thresholdByPriority: given.above_by_priority,
    windowMinutes: given.window_minutes,
    graceMinutes: given.grace_minutes,
    forRounds: given.for_rounds,
    ofRounds: given.of_rounds,
    clearRounds: given.clear_rounds,
    severity: given.severity,
    repeatMinutes: given.repeat_minutes,
    silencedUntil: given.silenced_until === undefined ? undefined : new Date(given.silenced_until as string),
    activeHours: given.active_hours,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
