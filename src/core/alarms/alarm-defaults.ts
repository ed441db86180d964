// The rules that a new deployment has, and how its own settings change them. By default the completion rate is that of
// the canary: a queue that is idle at night must not page anyone, and a queue that has stopped must.
import { type AlarmName, type AlarmRule, alarmNames, canary } from "./alarm.ts";

/** A deployment's own settings for a rule. A field that is left out keeps its default. */
export type AlarmOverride = Partial<Omit<AlarmRule, "alarm">>;
export type AlarmOverrides = Partial<Record<AlarmName, readonly AlarmOverride[]>>;

const everyRule: Omit<AlarmRule, "alarm" | "threshold"> = {
  queue: null,
  jobType: null,
  isEnabled: true,
  thresholdByPriority: {},
  windowMinutes: 0,
  graceMinutes: 0,
  forRounds: 1,
  ofRounds: 1,
  clearRounds: 1,
  severity: "warning",
  repeatMinutes: 240,
  silencedUntil: null,
  activeHours: null,
};

/** The higher the priority, the sooner a waiting job is a problem. */
const oldestSecondsByPriority = Object.fromEntries(
  Array.from({ length: 10 }, (_, priority) => [priority, priority >= 7 ? 300 : priority >= 3 ? 900 : 3600]),
);

const defaults: Record<AlarmName, AlarmOverride & { threshold: number }> = {
  // One in five minutes is enough: watch rounds enqueue one every two minutes, and a round may be skipped.
  completion_rate_low: {
    queue: canary.queue,
    jobType: canary.type,
    threshold: 0.2,
    windowMinutes: 5,
    forRounds: 3,
    severity: "critical",
  },
  queue_length_high: { threshold: 10_000, forRounds: 2 },
  queue_growing: { threshold: 1000, windowMinutes: 15, forRounds: 3 },
  oldest_pending_high: { threshold: 900, thresholdByPriority: oldestSecondsByPriority, forRounds: 2 },
  job_expired: { threshold: 0, windowMinutes: 30 },
  dead_letters: { threshold: 0 },
  breaker_open: { threshold: 0 },
  partition_blocked: { threshold: 900 },
  flow_stalled: { threshold: 86_400 },
  oldest_transaction: { threshold: 1800 },
  // This is the limit for drain rounds. The one for reap rounds is twice as long (policy/health.ts).
  round_overdue: { threshold: 180, forRounds: 2, severity: "critical" },
  enqueue_errors: { threshold: 10, windowMinutes: 5 },
  books_unbalanced: { threshold: 0, severity: "critical" },
  target_failing: { threshold: 900 },
  jobs_unreachable: { threshold: 0 },
};

/** An override without a scope, or with the scope of the default rule, changes that rule. Any other adds a rule. */
export function alarmRules(overrides: AlarmOverrides = {}): AlarmRule[] {
  return alarmNames.flatMap((alarm) => {
    const base = { ...everyRule, ...defaults[alarm], alarm };
    const alarmOverrides = overrides[alarm] ?? [];
    const baseOverride = alarmOverrides.find(
      (override) => !hasScope(override) || isSameScope(override, base),
    );
    const others = alarmOverrides.filter((override) => override !== baseOverride);
    const addedRules = others.map((override) =>
      applyOverride({ ...base, queue: null, jobType: null }, override),
    );
    return [applyOverride(base, baseOverride ?? {}), ...addedRules];
  });
}

function applyOverride(base: AlarmRule, override: AlarmOverride): AlarmRule {
  const rule = { ...base, ...override };
  // A threshold without a priority replaces the default thresholds of all priorities.
  const byPriority = override.threshold === undefined ? base.thresholdByPriority : {};
  return {
    ...rule,
    thresholdByPriority: { ...byPriority, ...override.thresholdByPriority },
    ofRounds: Math.max(override.ofRounds ?? rule.forRounds, rule.forRounds),
    clearRounds: override.clearRounds ?? rule.forRounds,
    // The sum of a window means nothing before the whole window has passed.
    graceMinutes:
      override.graceMinutes ??
      (rule.alarm === "completion_rate_low" ? rule.windowMinutes : rule.graceMinutes),
  };
}

function hasScope({ queue, jobType }: AlarmOverride): boolean {
  return Boolean(queue ?? jobType);
}

function isSameScope(a: AlarmOverride, b: AlarmOverride): boolean {
  return (a.queue ?? null) === (b.queue ?? null) && (a.jobType ?? null) === (b.jobType ?? null);
}
