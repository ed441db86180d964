// What each alarm reads from a snapshot, for the queue and the type that it is about.
import { overdueAfterSeconds } from "../policy/health.ts";
import type { Scope } from "../policy/scope.ts";
import type { Group, ImpossibleStates, Minute, RecentRound, Snapshot } from "../snapshot.ts";
import type { AlarmName, AlarmRule, TargetHealth } from "./alarm.ts";
import { type Reading, tooHigh, tooLow } from "./reading.ts";

export interface AlarmInput {
  snapshot: Snapshot;
  targets: readonly TargetHealth[];
  /** The snapshot's rows that lie within a scope. */
  groups(scope: Scope): readonly Group[];
  minutes(scope: Scope): readonly Minute[];
}

type Read = (input: AlarmInput, rule: AlarmRule) => Reading;

export const readings: Record<AlarmName, Read> = {
  completion_rate_low(input, rule) {
    const completed = sumOf(recent(input, rule), "completed");
    return tooLow({
      count: completed,
      perMinute: rule.threshold,
      minutes: rule.windowMinutes,
      summary: `${nameOf(rule)}: ${jobs(completed)} completed in ${rule.windowMinutes} min`,
    });
  },

  queue_length_high(input, rule) {
    const waiting = sumOf(input.groups(rule), "pending");
    const summary = `${nameOf(rule)}: ${jobs(waiting)} waiting`;
    return tooHigh(waiting, rule.threshold, { summary, unit: "jobs" });
  },

  queue_growing(input, rule) {
    // What was put off to a later time is no backlog: it counts from when it is due.
    const growth = Math.max(0, sumOf(recent(input, rule), "ready"));
    const summary = `${nameOf(rule)}: grew by ${jobs(growth)} in ${rule.windowMinutes} min`;
    return tooHigh(growth, rule.threshold, { summary, unit: "jobs" });
  },

  oldest_pending_high(input, rule) {
    const limitOf = (group: Group) => rule.thresholdByPriority[group.priority] ?? rule.threshold;
    const shareOf = (group: Group) => (group.oldestDueSeconds ?? 0) / limitOf(group);
    const [worst] = input.groups(rule).toSorted((a, b) => shareOf(b) - shareOf(a));
    const seconds = Math.round(worst?.oldestDueSeconds ?? 0);
    if (!worst || seconds === 0) {
      return tooHigh(0, rule.threshold, { summary: `${nameOf(rule)}: no due job waits`, unit: "s" });
    }
    const which = `type ${worst.type}, priority ${worst.priority}`;
    const summary = `${nameOf(rule)}: the oldest due job has waited for ${seconds} s (${which})`;
    return tooHigh(seconds, limitOf(worst), { summary, unit: "s" });
  },

  job_expired(input, rule) {
    const expired = sumOf(recent(input, rule), "expired");
    const summary = `${nameOf(rule)}: ${jobs(expired)} expired unprocessed in ${rule.windowMinutes} min`;
    return tooHigh(expired, rule.threshold, { summary, unit: "jobs" });
  },

  // What expired a moment ago is job_expired's to tell: one trouble, one alarm. Later it is a dead letter as others are.
  dead_letters(input, rule) {
    const expired = sumOf(recent(input, { ...rule, windowMinutes: expiredApartMinutes }), "expired");
    const dead = Math.max(0, sumOf(input.groups(rule), "dead") - expired);
    const summary = `${nameOf(rule)}: ${dead} dead ${dead === 1 ? "letter" : "letters"}`;
    return tooHigh(dead, rule.threshold, { summary, unit: "letters" });
  },

  breaker_open({ snapshot }, rule) {
    const opened = snapshot.openBreakers.find(({ type }) => type === rule.jobType)?.openedAt ?? snapshot.at;
    const seconds = secondsBetween(opened, snapshot.at);
    const since = seconds === 0 ? "" : ` for ${seconds} s`;
    const summary = `${nameOf(rule)}: most attempts failed, so its circuit breaker is open${since}`;
    const reading = tooHigh(seconds, rule.threshold, { summary, unit: "s" });
    return { ...reading, isBad: seconds >= rule.threshold, isClear: false };
  },

  oldest_transaction({ snapshot: { oldestTransaction: oldest } }, rule) {
    const seconds = Math.round(oldest?.seconds ?? 0);
    const summary = oldest
      ? `the oldest transaction has been open for ${seconds} s (${oldest.source})`
      : "no transaction is open";
    return tooHigh(seconds, rule.threshold, { summary, unit: "s" });
  },

  round_overdue: ({ snapshot }, rule) => overdue(snapshot, rule.threshold),

  enqueue_errors({ snapshot }, rule) {
    const since = windowStart(snapshot.at, rule.windowMinutes);
    const minutes = snapshot.enqueueErrors.filter(({ minute }) => minute >= since);
    const errors = sumOf(minutes, "errors");
    const summary = `${errors} enqueues failed or were refused in ${rule.windowMinutes} min`;
    return tooHigh(errors, rule.threshold, { summary, unit: "errors" });
  },

  books_unbalanced({ snapshot: { groups, impossibleStates } }, rule) {
    const unbalanced = groups
      .map((group) => ({ group, by: Math.abs(differenceOf(group)) }))
      .filter(({ by }) => by > 0);
    const names = unbalanced.slice(0, namedAtMost).map(({ group }) => `${group.queue}/${group.type}`);
    const missing = sumOf(unbalanced, "by");
    const troubles = [
      ...(unbalanced.length > 0 ? [`the books are off by ${jobs(missing)} (${names.join(", ")})`] : []),
      ...impossible(impossibleStates),
    ];
    const summary = troubles.join("; ") || "the books balance";
    return tooHigh(missing + impossibleStates.count, rule.threshold, { summary, unit: "jobs" });
  },

  target_failing: ({ snapshot: { at }, targets }, rule) => failing(targets, { at, limit: rule.threshold }),

  jobs_unreachable({ snapshot: { recentRounds } }, rule) {
    const found = recentRounds.reduce((sum, round) => sum + unreachableOf(round), 0);
    const summary =
      found > 0
        ? `the last reap rounds brought back ${jobs(found)} that no claim could find`
        : "all jobs can be found";
    return tooHigh(found, rule.threshold, { summary, unit: "jobs" });
  },
};

/** What its step of that name answered (queue/reap.ts). */
function unreachableOf({ steps }: RecentRound): number {
  const step = (steps?.unreachable ?? null) as { did?: number[] } | null;
  return step?.did?.[0] ?? 0;
}

const namedAtMost = 5;
/** So long an expired job is told of as such, and then as a dead letter. */
export const expiredApartMinutes = 30;

function overdue({ at, rounds, runningSince, expiredLeaseSeconds }: Snapshot, limitSeconds: number): Reading {
  const kinds = (["drain", "reap"] as const).map((kind) => {
    const last = rounds.find((round) => round.kind === kind);
    return {
      kind,
      hasFailed: last?.hasFailed ?? false,
      seconds: secondsBetween(last?.endedAt ?? runningSince ?? at, at),
      limit: overdueAfterSeconds(kind, { drainSeconds: limitSeconds }),
    };
  });
  const [worst = { seconds: 0, limit: limitSeconds }] = kinds.toSorted(
    (a, b) => b.seconds / b.limit - a.seconds / a.limit,
  );
  const troubles = [
    ...kinds
      .filter(({ seconds, limit }) => seconds > limit)
      .map(({ kind, seconds, limit }) => `no ${kind} round for ${seconds} s (the limit is ${limit} s)`),
    ...kinds.filter(({ hasFailed }) => hasFailed).map(({ kind }) => `the last ${kind} round failed`),
    ...(expiredLeaseSeconds > overdueAfterSeconds("reap", { drainSeconds: limitSeconds })
      ? [`leases that ran out wait for the reaper for ${Math.round(expiredLeaseSeconds)} s`]
      : []),
  ];
  return {
    value: worst.seconds,
    threshold: worst.limit,
    isBad: troubles.length > 0,
    isClear: troubles.length === 0,
    summary: troubles.join(", ") || "drain and reap rounds are on time",
  };
}

function impossible({ count, example }: ImpossibleStates): string[] {
  if (!example) return [];
  const more = count > 1 ? `, and ${count - 1} more` : "";
  return [`impossible: ${example.kind} ${example.id} ${example.what}${more}`];
}

/** A target that answered 410 is bad at once; one that only fails has some time to recover. */
function failing(targets: readonly TargetHealth[], { at, limit }: { at: Date; limit: number }): Reading {
  const gone = targets.filter(({ goneSince }) => goneSince !== null);
  const troubles = targets.flatMap(({ name, goneSince, failingSince }) => {
    if (goneSince) return [`the target ${name} answered 410 and is switched off`];
    return failingSince ? [`the target ${name} has failed for ${secondsBetween(failingSince, at)} s`] : [];
  });
  const summary = troubles.join(", ") || "all targets of alarms take their notices";
  const since = (gone.length > 0 ? gone : targets).map(
    (target) => target.goneSince ?? target.failingSince ?? at,
  );
  const longest = Math.max(0, ...since.map((from) => secondsBetween(from, at)));
  const reading = tooHigh(longest, gone.length > 0 ? 0 : limit, { summary, unit: "s" });
  return { ...reading, isBad: gone.length > 0 || reading.isBad, isClear: troubles.length === 0 };
}

/** Whole minutes of the window and the running one: a minute that has just begun says nothing alone. */
function recent(
  { snapshot: { at }, minutes }: AlarmInput,
  rule: Scope & { windowMinutes: number },
): Minute[] {
  const since = windowStart(at, rule.windowMinutes);
  return minutes(rule).filter(({ minute }) => minute >= since);
}

function windowStart(at: Date, windowMinutes: number): Date {
  return new Date((Math.floor(at.getTime() / 60_000) - windowMinutes) * 60_000);
}

function sumOf<Key extends string>(rows: readonly Record<Key, number>[], key: Key): number {
  return rows.reduce((sum, row) => sum + row[key], 0);
}

function secondsBetween(from: Date, to: Date): number {
  return Math.max(0, Math.round((to.getTime() - from.getTime()) / 1000));
}

function differenceOf(group: Group): number {
  const { enqueued, pending, leased, completed, dead, discarded, cancelled } = group;
  return enqueued - pending - leased - completed - dead - discarded - cancelled;
}

function jobs(count: number): string {
  return `${count} ${count === 1 ? "job" : "jobs"}`;
}

function nameOf({ queue, jobType }: Scope): string {
  const names = [...(jobType ? [`type ${jobType}`] : []), ...(queue ? [`queue ${queue}`] : [])];
  return names.join(" in ") || "all queues";
}
