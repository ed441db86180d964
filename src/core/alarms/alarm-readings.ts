// The reading of each alarm: the value that it takes from a snapshot, for the queue and the type that it is about.
import type { Scope } from "../policy/scope.ts";
import type { BlockedQueue, Group, ImpossibleStates, Minute, RecentRound, Snapshot } from "../snapshot.ts";
import type { AlarmName, AlarmRule, TargetHealth } from "./alarm.ts";
import { readFailingTargets } from "./failing-targets.ts";
import { readOverdueRounds } from "./overdue-rounds.ts";
import { type Reading, secondsBetween, tooHigh, tooLow } from "./reading.ts";

export interface AlarmInput {
  snapshot: Snapshot;
  targets: readonly TargetHealth[];
  /** The groups of the snapshot that are within a scope. */
  groups(scope: Scope): readonly Group[];
  minutes(scope: Scope): readonly Minute[];
  /** The blocked partition keys of each queue. */
  blocked: ReadonlyMap<string, BlockedQueue>;
}

type Read = (input: AlarmInput, rule: AlarmRule) => Reading;

export const readings: Record<AlarmName, Read> = {
  completion_rate_low(input, rule) {
    const completed = sumField(minutesInWindow(input, rule), "completed");
    return tooLow({
      count: completed,
      perMinute: rule.threshold,
      minutes: rule.windowMinutes,
      summary: `${describeScope(rule)}: ${jobs(completed)} completed in ${rule.windowMinutes} min`,
    });
  },

  queue_length_high(input, rule) {
    const waiting = sumField(input.groups(rule), "pending");
    const summary = `${describeScope(rule)}: ${jobs(waiting)} waiting`;
    return tooHigh(waiting, rule.threshold, { summary, unit: "jobs" });
  },

  queue_growing(input, rule) {
    // Scheduled jobs are no backlog. A job counts from when it is due.
    const growth = Math.max(0, sumField(minutesInWindow(input, rule), "ready"));
    const summary = `${describeScope(rule)}: grew by ${jobs(growth)} in ${rule.windowMinutes} min`;
    return tooHigh(growth, rule.threshold, { summary, unit: "jobs" });
  },

  oldest_pending_high(input, rule) {
    const findLimit = (group: Group) => rule.thresholdByPriority[group.priority] ?? rule.threshold;
    const shareOfLimit = (group: Group) => (group.oldestDueSeconds ?? 0) / findLimit(group);
    const [worst] = input.groups(rule).toSorted((a, b) => shareOfLimit(b) - shareOfLimit(a));
    const seconds = Math.round(worst?.oldestDueSeconds ?? 0);
    if (!worst || seconds === 0) {
      return tooHigh(0, rule.threshold, { summary: `${describeScope(rule)}: no due job waits`, unit: "s" });
    }
    const which = `type ${worst.type}, priority ${worst.priority}`;
    const summary = `${describeScope(rule)}: the oldest due job has waited for ${seconds} s (${which})`;
    return tooHigh(seconds, findLimit(worst), { summary, unit: "s" });
  },

  job_expired(input, rule) {
    const expired = sumField(minutesInWindow(input, rule), "expired");
    const summary = `${describeScope(rule)}: ${jobs(expired)} expired unprocessed in ${rule.windowMinutes} min`;
    return tooHigh(expired, rule.threshold, { summary, unit: "jobs" });
  },

  // Jobs that expired recently are left to job_expired, so that one problem raises one alarm. Later they count here.
  dead_letters(input, rule) {
    const expired = sumField(
      minutesInWindow(input, { ...rule, windowMinutes: expiredAlarmMinutes }),
      "expired",
    );
    const dead = Math.max(0, sumField(input.groups(rule), "dead") - expired);
    const summary = `${describeScope(rule)}: ${dead} dead ${dead === 1 ? "letter" : "letters"}`;
    return tooHigh(dead, rule.threshold, { summary, unit: "letters" });
  },

  breaker_open({ snapshot }, rule) {
    const opened = snapshot.openBreakers.find(({ type }) => type === rule.jobType)?.openedAt ?? snapshot.at;
    const seconds = secondsBetween(opened, snapshot.at);
    const since = seconds === 0 ? "" : ` for ${seconds} s`;
    const summary = `${describeScope(rule)}: most attempts failed, so its circuit breaker is open${since}`;
    const reading = tooHigh(seconds, rule.threshold, { summary, unit: "s" });
    return { ...reading, isBad: seconds >= rule.threshold, isClear: false };
  },

  partition_blocked({ snapshot: { at }, blocked }, rule) {
    const { keys = 0, since = null, jobId = null } = blocked.get(rule.queue ?? "") ?? {};
    const seconds = secondsBetween(since ?? at, at);
    const count = keys === 1 ? "1 partition key is blocked" : `${keys} partition keys are blocked`;
    const what =
      keys === 0
        ? "no partition key is blocked"
        : `${count}, the longest for ${seconds} s by the dead job ${jobId}`;
    return tooHigh(seconds, rule.threshold, { summary: `${describeScope(rule)}: ${what}`, unit: "s" });
  },

  flow_stalled({ snapshot: { at, idleFlows } }, rule) {
    const [longest] = idleFlows;
    const seconds = secondsBetween(longest?.since ?? at, at);
    const stalled = idleFlows.filter(({ since }) => secondsBetween(since, at) > rule.threshold).length;
    const more = stalled > 1 ? `, and ${stalled - 1} more for too long` : "";
    const summary = longest
      ? `the flow ${longest.flowId} has made no progress for ${seconds} s${more}`
      : "no flow is running";
    return tooHigh(seconds, rule.threshold, { summary, unit: "s" });
  },

  oldest_transaction({ snapshot: { oldestTransaction: oldest } }, rule) {
    const seconds = Math.round(oldest?.seconds ?? 0);
    const summary = oldest
      ? `the oldest transaction has been open for ${seconds} s (${oldest.source})`
      : "no transaction is open";
    return tooHigh(seconds, rule.threshold, { summary, unit: "s" });
  },

  round_overdue: ({ snapshot }, rule) => readOverdueRounds(snapshot, rule.threshold),

  enqueue_errors({ snapshot }, rule) {
    const since = windowStart(snapshot.at, rule.windowMinutes);
    const minutes = snapshot.enqueueErrors.filter(({ minute }) => minute >= since);
    const errors = sumField(minutes, "errors");
    const summary = `${errors} enqueues failed or were refused in ${rule.windowMinutes} min`;
    return tooHigh(errors, rule.threshold, { summary, unit: "errors" });
  },

  books_unbalanced({ snapshot: { groups, impossibleStates } }, rule) {
    const unbalanced = groups
      .map((group) => ({ group, by: Math.abs(findImbalance(group)) }))
      .filter(({ by }) => by > 0);
    const names = unbalanced.slice(0, maxNames).map(({ group }) => `${group.queue}/${group.type}`);
    const missing = sumField(unbalanced, "by");
    const problems = [
      ...(unbalanced.length > 0 ? [`the books are off by ${jobs(missing)} (${names.join(", ")})`] : []),
      ...describeImpossible(impossibleStates),
    ];
    const summary = problems.join("; ") || "the books balance";
    return tooHigh(missing + impossibleStates.count, rule.threshold, { summary, unit: "jobs" });
  },

  target_failing: ({ snapshot: { at }, targets }, rule) =>
    readFailingTargets(targets, { at, limit: rule.threshold }),

  jobs_unreachable({ snapshot: { recentRounds } }, rule) {
    const unreachable = countRepaired(recentRounds, "unreachable");
    const stuck = countRepaired(recentRounds, "stuck");
    const problems = [
      ...(unreachable > 0 ? [`brought back ${jobs(unreachable)} that no claim could find`] : []),
      ...(stuck > 0 ? [`released ${jobs(stuck)} that waited for nothing`] : []),
    ];
    const summary =
      problems.length > 0 ? `the last reap rounds ${problems.join(" and ")}` : "all jobs can be found";
    return tooHigh(unreachable + stuck, rule.threshold, { summary, unit: "jobs" });
  },
};

/** What a step that should have nothing to do has repaired (queue/reap.ts). */
function countRepaired(rounds: readonly RecentRound[], name: "unreachable" | "stuck"): number {
  const answers = rounds.map(({ steps }) => (steps?.[name] ?? null) as { did?: number[] } | null);
  return answers.reduce((sum, step) => sum + (step?.did?.[0] ?? 0), 0);
}

const maxNames = 5;
/** For this long an expired job counts for job_expired, and after that for dead_letters. */
export const expiredAlarmMinutes = 30;

function describeImpossible({ count, example }: ImpossibleStates): string[] {
  if (!example) return [];
  const more = count > 1 ? `, and ${count - 1} more` : "";
  return [`impossible: ${example.kind} ${example.id} ${example.what}${more}`];
}

/** The whole minutes of the window and the current one: a minute that has just begun says nothing on its own. */
function minutesInWindow(
  { snapshot: { at }, minutes }: AlarmInput,
  rule: Scope & { windowMinutes: number },
): Minute[] {
  const since = windowStart(at, rule.windowMinutes);
  return minutes(rule).filter(({ minute }) => minute >= since);
}

function windowStart(at: Date, windowMinutes: number): Date {
  return new Date((Math.floor(at.getTime() / 60_000) - windowMinutes) * 60_000);
}

function sumField<Key extends string>(rows: readonly Record<Key, number>[], key: Key): number {
  return rows.reduce((sum, row) => sum + row[key], 0);
}

function findImbalance(group: Group): number {
  const { enqueued, blocked, pending, leased, completed, dead, discarded, cancelled } = group;
  return enqueued - blocked - pending - leased - completed - dead - discarded - cancelled;
}

function jobs(count: number): string {
  return `${count} ${count === 1 ? "job" : "jobs"}`;
}

function describeScope({ queue, jobType }: Scope): string {
  const names = [...(jobType ? [`type ${jobType}`] : []), ...(queue ? [`queue ${queue}`] : [])];
  return names.join(" in ") || "all queues";
}
