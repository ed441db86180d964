// SLUICE_ALARM_RULES: the settings that differ from the default rules, by alarm.
import * as z from "zod";
import { name } from "../../contract/jobs.ts";
import { weekdays } from "../../core/alarms/active-hours.ts";
import { type AlarmName, type AlarmRule, alarmNames, canary, severities } from "../../core/alarms/alarm.ts";
import { type AlarmOverride, alarmRules } from "../../core/alarms/alarm-defaults.ts";
import { jsonSetting } from "./json-setting.ts";

const clockTime = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$|^24:00$/, "must be a time such as 08:00");
const activeHours = z
  .strictObject({
    from: clockTime,
    to: clockTime,
    time_zone: z.string().default("UTC").refine(isTimeZone, "must be a time zone such as Europe/Berlin"),
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
const aboveField = { above: z.number().min(0).optional() };
/** The snapshot has sums of the last hour only. */
const windowField = { window_minutes: z.int().min(1).max(55).optional() };
const scopeFields = { queue: name.optional(), job_type: name.optional() };
const thresholdsByPriority = z
  .partialRecord(z.string().regex(/^\d$/, "must be a priority from 0 to 9"), z.number().min(0))
  .optional();

const fieldsByAlarm = {
  completion_rate_low: { ...scopeFields, ...windowField, per_minute_below: z.number().positive().optional() },
  queue_length_high: { ...scopeFields, ...aboveField },
  queue_growing: { ...scopeFields, ...windowField, ...aboveField },
  oldest_pending_high: { ...scopeFields, ...aboveField, above_by_priority: thresholdsByPriority },
  job_expired: { ...scopeFields, ...windowField, ...aboveField },
  dead_letters: { ...scopeFields, ...aboveField },
  breaker_open: { job_type: name.optional(), ...aboveField },
  partition_blocked: { queue: name.optional(), ...aboveField },
  flow_stalled: aboveField,
  oldest_transaction: aboveField,
  round_overdue: aboveField,
  enqueue_errors: { ...windowField, ...aboveField },
  books_unbalanced: aboveField,
  target_failing: aboveField,
  jobs_unreachable: aboveField,
} satisfies Record<AlarmName, z.ZodRawShape>;

/** A rule of the setting after its check. The fields depend on the alarm. */
interface RuleSetting {
  [field: string]: unknown;
  queue?: string | undefined;
  job_type?: string | undefined;
}

const ruleListSchema = (alarm: AlarmName) =>
  z
    .preprocess(
      (value) => (Array.isArray(value) ? value : [value]),
      z.array(z.strictObject({ ...fieldsByAlarm[alarm], ...ruleFields })).max(100),
    )
    .superRefine((rules, context) => checkRuleList(alarm, rules as RuleSetting[], context));

function checkRuleList(alarm: AlarmName, rules: readonly RuleSetting[], context: z.RefinementCtx): void {
  const scopes = rules.map(({ queue, job_type }) => `${queue ?? ""}/${job_type ?? ""}`);
  rules.forEach((rule, index) => {
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
  Object.fromEntries(alarmNames.map((alarm) => [alarm, ruleListSchema(alarm).optional()])),
);

export const alarmRuleSetting = jsonSetting(overrides).transform((setting): AlarmRule[] =>
  alarmRules(
    Object.fromEntries(
      Object.entries(setting).map(([alarm, rules]) => [
        alarm,
        ((rules ?? []) as RuleSetting[]).map(toOverride),
      ]),
    ),
  ),
);

/** Only the fields that the setting has. The others keep their defaults. */
function toOverride(rule: RuleSetting): AlarmOverride {
  const fields: Record<string, unknown> = {
    queue: rule.queue,
    jobType: rule.job_type,
    isEnabled: rule.enabled,
    threshold: rule.above ?? rule.per_minute_below,
    thresholdByPriority: rule.above_by_priority,
    windowMinutes: rule.window_minutes,
    graceMinutes: rule.grace_minutes,
    forRounds: rule.for_rounds,
    ofRounds: rule.of_rounds,
    clearRounds: rule.clear_rounds,
    severity: rule.severity,
    repeatMinutes: rule.repeat_minutes,
    silencedUntil: rule.silenced_until === undefined ? undefined : new Date(rule.silenced_until as string),
    activeHours: rule.active_hours,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
