// Applies the rules to a snapshot. The result is one observation for each subject of a rule, such as a queue or a type.
import { within } from "../policy/scope.ts";
import { isActive } from "./active-hours.ts";
import type { AlarmKey, AlarmName, AlarmRule, Observation } from "./alarm.ts";
import { type AlarmInput, expiredAlarmMinutes, readings } from "./alarm-readings.ts";

export function observe(
  source: Pick<AlarmInput, "snapshot" | "targets">,
  rules: readonly AlarmRule[],
): Observation[] {
  const { at, runningSince, groups, minutes, blockedKeys } = source.snapshot;
  const blocked = new Map(blockedKeys.map((entry) => [entry.queue, entry]));
  const input: AlarmInput = { ...source, groups: within(groups), minutes: within(minutes), blocked };
  return rules
    .filter((rule) => rule.isEnabled && isActive(rule.activeHours, at) && isPastGrace(rule, at, runningSince))
    .flatMap((rule) =>
      listSubjects(rule, input)
        .filter((subject) => findRule(subject, rules) === rule)
        .map((subject) => ({ ...subject, rule, ...readings[rule.alarm](input, { ...rule, ...subject }) })),
    );
}

/** The lengths in minutes of the windows that the rules need sums for. */
export function listWindows(rules: readonly AlarmRule[]): number[] {
  return [...new Set([...rules.map(({ windowMinutes }) => windowMinutes), expiredAlarmMinutes])];
}

function isPastGrace(rule: AlarmRule, at: Date, runningSince: Date | null): boolean {
  if (rule.graceMinutes === 0) return true;
  return runningSince !== null && at.getTime() - runningSince.getTime() >= rule.graceMinutes * 60_000;
}

/** The subject of each alarm: a queue, a type, a type in a queue, the scope of its rule, or the whole deployment. */
const subjects = {
  completion_rate_low: "rule",
  queue_length_high: "queue",
  queue_growing: "queue",
  oldest_pending_high: "queue",
  job_expired: "queue and type",
  dead_letters: "queue and type",
  breaker_open: "type",
  partition_blocked: "queue with partition keys",
  flow_stalled: "deployment",
  oldest_transaction: "deployment",
  round_overdue: "deployment",
  enqueue_errors: "deployment",
  books_unbalanced: "deployment",
  target_failing: "deployment",
  jobs_unreachable: "deployment",
} as const satisfies Record<AlarmName, string>;

function listSubjects(rule: AlarmRule, { snapshot, groups }: AlarmInput): AlarmKey[] {
  const { alarm, queue, jobType } = rule;
  const inScope = groups(rule);
  switch (subjects[alarm]) {
    case "rule":
      return [{ alarm, queue, jobType }];
    case "deployment":
      return [{ alarm, queue: null, jobType: null }];
    case "queue":
      return distinct(inScope.map((group) => ({ alarm, queue: group.queue, jobType })));
    case "queue with partition keys":
      return snapshot.blockedKeys
        .filter((blocked) => queue === null || queue === blocked.queue)
        .map((blocked) => ({ alarm, queue: blocked.queue, jobType: null }));
    case "queue and type":
      return distinct(inScope.map((group) => ({ alarm, queue: group.queue, jobType: group.type })));
    case "type":
      return snapshot.openBreakers
        .filter(({ type }) => jobType === null || jobType === type)
        .map(({ type }) => ({ alarm, queue: null, jobType: type }));
    default:
      return subjects[alarm] satisfies never;
  }
}

/** If several rules fit a subject, the most specific one applies: a queue's own rule before the general one. */
function findRule(subject: AlarmKey, rules: readonly AlarmRule[]): AlarmRule | undefined {
  const specificity = (rule: AlarmRule) => Number(rule.queue !== null) + Number(rule.jobType !== null);
  return rules
    .filter(
      (rule) =>
        rule.alarm === subject.alarm &&
        (rule.queue === null || rule.queue === subject.queue) &&
        (rule.jobType === null
          ? subjects[rule.alarm] !== "queue" || subject.jobType === null
          : rule.jobType === subject.jobType),
    )
    .reduce<AlarmRule | undefined>(
      (best, rule) => (best && specificity(best) >= specificity(rule) ? best : rule),
      undefined,
    );
}

function distinct(keys: readonly AlarmKey[]): AlarmKey[] {
  return [...new Map(keys.map((key) => [`${key.queue}/${key.jobType}`, key])).values()];
}
