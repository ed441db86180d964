// What a look at the queue means by the rules: one observation for each thing that a rule watches.

import { within } from "../policy/scope.ts";
import { isActive } from "./active-hours.ts";
import type { AlarmKey, AlarmName, AlarmRule, Observation } from "./alarm.ts";
import { type AlarmInput, expiredApartMinutes, readings } from "./alarm-readings.ts";

export function observe(
  seen: Pick<AlarmInput, "snapshot" | "targets">,
  rules: readonly AlarmRule[],
): Observation[] {
  const { at, runningSince, groups, minutes } = seen.snapshot;
  const input: AlarmInput = { ...seen, groups: within(groups), minutes: within(minutes) };
  return rules
    .filter((rule) => rule.isEnabled && isActive(rule.activeHours, at) && isPastGrace(rule, at, runningSince))
    .flatMap((rule) =>
      subjectsOf(rule, input)
        .filter((subject) => ownerOf(subject, rules) === rule)
        .map((subject) => ({ ...subject, rule, ...readings[rule.alarm](input, { ...rule, ...subject }) })),
    );
}

/** Over how many minutes the rules sum up what happened. */
export function windowsOf(rules: readonly AlarmRule[]): number[] {
  return [...new Set([...rules.map(({ windowMinutes }) => windowMinutes), expiredApartMinutes])];
}

function isPastGrace(rule: AlarmRule, at: Date, runningSince: Date | null): boolean {
  if (rule.graceMinutes === 0) return true;
  return runningSince !== null && at.getTime() - runningSince.getTime() >= rule.graceMinutes * 60_000;
}

/** What each alarm is about: a queue, a type, a type in a queue, what its rule names, or the whole place. */
const subjects = {
  completion_rate_low: "rule",
  queue_length_high: "queue",
  queue_growing: "queue",
  oldest_pending_high: "queue",
  job_expired: "queue and type",
  dead_letters: "queue and type",
  breaker_open: "type",
  oldest_transaction: "place",
  round_overdue: "place",
  enqueue_errors: "place",
  books_unbalanced: "place",
  target_failing: "place",
  jobs_unreachable: "place",
} as const satisfies Record<AlarmName, string>;

function subjectsOf(rule: AlarmRule, { snapshot, groups }: AlarmInput): AlarmKey[] {
  const { alarm, queue, jobType } = rule;
  const inScope = groups(rule);
  switch (subjects[alarm]) {
    case "rule":
      return [{ alarm, queue, jobType }];
    case "place":
      return [{ alarm, queue: null, jobType: null }];
    case "queue":
      return distinct(inScope.map((group) => ({ alarm, queue: group.queue, jobType })));
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

/** Of several rules that fit a subject the one that names it most closely: a queue's own in place of the general one. */
function ownerOf(subject: AlarmKey, rules: readonly AlarmRule[]): AlarmRule | undefined {
  const closeness = (rule: AlarmRule) => Number(rule.queue !== null) + Number(rule.jobType !== null);
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
      (owner, rule) => (owner && closeness(owner) >= closeness(rule) ? owner : rule),
      undefined,
    );
}

function distinct(keys: readonly AlarmKey[]): AlarmKey[] {
  return [...new Map(keys.map((key) => [`${key.queue}/${key.jobType}`, key])).values()];
}
