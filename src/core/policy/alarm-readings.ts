// What each alarm reads off a look at the queue, for the queue, type or place that it is about.
import type { AlarmName, AlarmRule, TargetHealth } from "../alarm.ts";
import type { Group, Minute, Snapshot } from "../snapshot.ts";
import { type Reading, tooHigh, tooLow } from "./reading.ts";
import type { Scope } from "./scope.ts";

export interface Sight {
  snapshot: Snapshot;
  targets: readonly TargetHealth[];
  /** The snapshot's rows that lie within a scope. */
  groups(scope: Scope): readonly Group[];
  minutes(scope: Scope): readonly Minute[];
}

type Read = (sight: Sight, rule: AlarmRule) => Reading;

export const readings: Record<AlarmName, Read> = {
  completion_rate_low(sight, rule) {
    const completed = sumOf(recent(sight, rule), "completed");
    return tooLow({
      count: completed,
      perMinute: rule.threshold,
      minutes: rule.windowMinutes,
      summary: `${nameOf(rule)}: ${jobs(completed)} completed in ${rule.windowMinutes} min`,
    });
  },

  queue_length_high(sight, rule) {
    const waiting = sumOf(sight.groups(rule), "pending");
    return tooHigh(waiting, rule.threshold, `${nameOf(rule)}: ${jobs(waiting)} waiting`);
  },

  queue_growing(sight, rule) {
    // What was put off to a later time is no backlog: it counts from when it is due.
    const growth = Math.max(0, sumOf(recent(sight, rule), "ready"));
    const summary = `${nameOf(rule)}: grew by ${jobs(growth)} in ${rule.windowMinutes} min`;
    return tooHigh(growth, rule.threshold, summary);
  },

  oldest_pending_high(sight, rule) {
    const limitOf = (group: Group) => rule.thresholdByPriority[group.priority] ?? rule.threshold;
    const shareOf = (group: Group) => (group.oldestDueSeconds ?? 0) / limitOf(group);
    const [worst] = sight.groups(rule).toSorted((a, b) => shareOf(b) - shareOf(a));
    if (!worst) return tooHigh(0, rule.threshold, `${nameOf(rule)}: nothing waits`);
    const seconds = Math.round(worst.oldestDueSeconds ?? 0);
    const which = `type ${worst.type}, priority ${worst.priority}`;
    return tooHigh(
      seconds,
      limitOf(worst),
      `${nameOf(rule)}: the oldest due job waits for ${seconds} s (${which})`,
    );
  },

  job_expired(sight, rule) {
    const expired = sumOf(recent(sight, rule), "expired");
    const summary = `${nameOf(rule)}: ${jobs(expired)} expired unprocessed in ${rule.windowMinutes} min`;
    return tooHigh(expired, rule.threshold, summary);
  },

  // What expired a moment ago is job_expired's to tell: one trouble, one alarm. Later it is a dead letter as others are.
  dead_letters(sight, rule) {
    const expired = sumOf(recent(sight, { ...rule, windowMinutes: expiredApartMinutes }), "expired");
    const dead = Math.max(0, sumOf(sight.groups(rule), "dead") - expired);
    return tooHigh(
      dead,
      rule.threshold,
      `${nameOf(rule)}: ${dead} dead ${dead === 1 ? "letter" : "letters"}`,
    );
  },

  breaker_open({ snapshot }, rule) {
    const opened = snapshot.openBreakers.find(({ type }) => type === rule.jobType)?.openedAt ?? snapshot.at;
    const seconds = secondsBetween(opened, snapshot.at);
    const summary = `${nameOf(rule)}: its breaker has been open for ${seconds} s, most attempts fail`;
    const reading = tooHigh(seconds, rule.threshold, summary);
    return { ...reading, isBad: seconds >= rule.threshold, isClear: false };
  },

  oldest_transaction({ snapshot: { oldestTransaction: oldest } }, rule) {
    const seconds = Math.round(oldest?.seconds ?? 0);
    const holder = oldest ? ` (${oldest.source})` : "";
    return tooHigh(seconds, rule.threshold, `the oldest transaction has been open for ${seconds} s${holder}`);
  },

  round_overdue: ({ snapshot }, rule) => overdue(snapshot, rule.threshold),

  enqueue_errors({ snapshot }, rule) {
    const since = windowStart(snapshot.at, rule.windowMinutes);
    const minutes = snapshot.enqueueErrors.filter(({ minute }) => minute >= since);
    const errors = sumOf(minutes, "errors");
    return tooHigh(
      errors,
      rule.threshold,
      `${errors} enqueues failed or were refused in ${rule.windowMinutes} min`,
    );
  },

  books_unbalanced({ snapshot: { groups } }, rule) {
    const off = groups
      .map((group) => ({ group, by: Math.abs(differenceOf(group)) }))
      .filter(({ by }) => by > 0);
    const names = off.slice(0, namedAtMost).map(({ group }) => `${group.queue}/${group.type}`);
    const missing = sumOf(off, "by");
    const where = off.length > 0 ? ` (${names.join(", ")})` : "";
    return tooHigh(missing, rule.threshold, `the books are off by ${jobs(missing)}${where}`);
  },

  target_failing({ snapshot: { at }, targets }, rule) {
    const failing = targets.flatMap(({ name, offSince, failingSince }) => {
      const since = offSince ?? failingSince;
      const verb = offSince ? "is off (410)" : "fails";
      return since ? [{ name, verb, isOff: offSince !== null, seconds: secondsBetween(since, at) }] : [];
    });
    const longest = Math.max(0, ...failing.map(({ seconds }) => seconds));
    const list = failing.map(({ name, verb, seconds }) => `${name} ${verb} for ${seconds} s`).join(", ");
    const reading = tooHigh(longest, rule.threshold, `alarm targets: ${list || "all well"}`);
    const isOff = failing.some((target) => target.isOff);
    return { ...reading, isBad: isOff || reading.isBad, isClear: failing.length === 0 };
  },
};

/** Reaps come half as often as drains. */
const reapFactor = 2;
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
      limit: kind === "reap" ? limitSeconds * reapFactor : limitSeconds,
    };
  });
  const [worst = { seconds: 0, limit: limitSeconds }] = kinds.toSorted(
    (a, b) => b.seconds / b.limit - a.seconds / a.limit,
  );
  const troubles = [
    ...kinds
      .filter(({ seconds, limit }) => seconds > limit)
      .map(({ kind, seconds }) => `no ${kind} round for ${seconds} s`),
    ...kinds.filter(({ hasFailed }) => hasFailed).map(({ kind }) => `the last ${kind} round failed`),
    ...(expiredLeaseSeconds > limitSeconds * reapFactor
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

/** Whole minutes of the window and the running one: a minute that has just begun says nothing alone. */
function recent({ snapshot: { at }, minutes }: Sight, rule: Scope & { windowMinutes: number }): Minute[] {
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
