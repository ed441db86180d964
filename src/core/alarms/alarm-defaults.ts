// The rules that a new deployment starts with, and how a deployment's own are laid over them. A queue that is idle at
// night must not page anyone and a stopped one must: so by default the completion rate is that of the canary.
import { type AlarmName, type AlarmRule, alarmNames, canary } from "./alarm.ts";

/** What a deployment says of a rule; what it leaves out is as in the default. */
export type AlarmOverride = Partial<Omit<AlarmRule, "alarm">>;
export type AlarmOverrides = Partial<Record<AlarmName, readonly AlarmOverride[]>>;

const common: Omit<AlarmRule, "alarm" | "threshold"> = {
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

/** The more urgent a job is, the sooner its waiting is trouble. */
const oldestSecondsByPriority = Object.fromEntries(
  Array.from({ length: 10 }, (_, priority) => [priority, priority >= 7 ? 300 : priority >= 3 ? 900 : 3600]),
);

const defaults: Record<AlarmName, AlarmOverride & { threshold: number }> = {
  // One in five minutes: watch rounds enqueue one every two, and a round may be skipped.
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
  oldest_transaction: { threshold: 1800 },
  // The limit of a drain. That of a reap is twice as long (policy/health.ts).
  round_overdue: { threshold: 180, forRounds: 2, severity: "critical" },
  enqueue_errors: { threshold: 10, windowMinutes: 5 },
  books_unbalanced: { threshold: 0, severity: "critical" },
  target_failing: { threshold: 900 },
  jobs_unreachable: { threshold: 0 },
};

/** An override without a scope, or with the default's own, changes the default; any other is a rule beside it. */
export function alarmRules(overrides: AlarmOverrides = {}): AlarmRule[] {
  return alarmNames.flatMap((alarm) => {
    const base = { ...common, ...defaults[alarm], alarm };
    const given = overrides[alarm] ?? [];
    const ofDefault = given.find((override) => !hasScope(override) || isSameScope(override, base));
    const others = given.filter((override) => override !== ofDefault);
    const beside = others.map((override) => ruleOf({ ...base, queue: null, jobType: null }, override));
    return [ruleOf(base, ofDefault ?? {}), ...beside];
  });
}

function ruleOf(base: AlarmRule, override: AlarmOverride): AlarmRule {
  const rule = { ...base, ...override };
  // A threshold for all priorities is meant for all of them.
  const byPriority = override.threshold === undefined ? base.thresholdByPriority : {};
  return {
    ...rule,
    thresholdByPriority: { ...byPriority, ...override.thresholdByPriority },
    ofRounds: Math.max(override.ofRounds ?? rule.forRounds, rule.forRounds),
    clearRounds: override.clearRounds ?? rule.forRounds,
    // Before a whole window has passed, its sum says nothing.
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
