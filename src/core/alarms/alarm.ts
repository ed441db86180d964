// What an alarm is: its name, its rule, the observation of one round, and the state that is stored between rounds.
import type { ActiveHours } from "./active-hours.ts";

export const alarmNames = [
  "completion_rate_low",
  "queue_length_high",
  "queue_growing",
  "oldest_pending_high",
  "job_expired",
  "dead_letters",
  "breaker_open",
  "partition_blocked",
  "flow_stalled",
  "oldest_transaction",
  "round_overdue",
  "enqueue_errors",
  "books_unbalanced",
  "target_failing",
  "jobs_unreachable",
] as const;
export type AlarmName = (typeof alarmNames)[number];

export const severities = ["critical", "warning", "info"] as const;
export type Severity = (typeof severities)[number];

/** A job of Sluice's own. Each watch round enqueues one like any other job. When it completes, the queue works. */
export const canary = { type: "sluice.canary", queue: "sluice" } as const;

/** Lists and sums of the users' jobs leave the canary out. */
export function isCanary({ type }: { type: string }): boolean {
  return type === canary.type;
}

/** Types that only the Worker itself enqueues. */
export function isOwnType(type: string): boolean {
  return type.startsWith("sluice.");
}

/** Identifies an alarm: its name, and the queue and the type that it is about. Null means all of them. */
export interface AlarmKey {
  alarm: AlarmName;
  queue: string | null;
  jobType: string | null;
}

/** The key as one text. Names of alarms, queues and types contain no slash. */
export function alarmKey({ alarm, queue, jobType }: Pick<Notice, "alarm" | "queue" | "jobType">): string {
  return [alarm, queue ?? "", jobType ?? ""].join("/");
}

export interface AlarmRule extends AlarmKey {
  isEnabled: boolean;
  /** The setting `above`, or `per_minute_below` for completion_rate_low. The unit depends on the alarm: jobs, seconds, errors. */
  threshold: number;
  /** Replaces the threshold for jobs of that priority. Only oldest_pending_high uses it. */
  thresholdByPriority: Readonly<Record<number, number>>;
  windowMinutes: number;
  /** The rule is not checked until the deployment has run for this long. */
  graceMinutes: number;
  /** The alarm fires when this many of the last `ofRounds` rounds were bad. */
  forRounds: number;
  ofRounds: number;
  /** The alarm is resolved after this many clear rounds in a row. */
  clearRounds: number;
  severity: Severity;
  repeatMinutes: number;
  silencedUntil: Date | null;
  activeHours: ActiveHours | null;
}

/** The reading of one round, with its rule. A value near the threshold is neither bad nor clear (reading.ts). */
export interface Observation extends AlarmKey {
  rule: AlarmRule;
  value: number;
  threshold: number;
  isBad: boolean;
  isClear: boolean;
  summary: string;
}

export interface AlarmState extends AlarmKey {
  phase: "ok" | "pending" | "firing";
  /** When the first bad round was. */
  since: Date;
  changedAt: Date;
  /** Before the alarm fires: which of the last rounds were bad. */
  recent: readonly boolean[];
  /** While the alarm fires: the number of clear rounds in a row. */
  clearRounds: number;
  /** The phase that the targets were last notified of. During a silence it lags behind the phase. */
  notified: "ok" | "firing";
  notifiedAt: Date | null;
  severity: Severity;
  value: number | null;
  threshold: number;
  summary: string;
}

/** A message to the targets about one change of an alarm. */
export interface Notice {
  kind: "firing" | "resolved" | "test";
  at: Date;
  alarm: AlarmName | "test";
  queue: string | null;
  jobType: string | null;
  severity: Severity;
  value: number | null;
  threshold: number | null;
  since: Date;
  summary: string;
}

/** Whether deliveries to a target succeed. */
export interface TargetHealth {
  name: string;
  /** When it answered 410. Nothing more is sent to it until its URL changes or a test notice succeeds. */
  goneSince: Date | null;
  failingSince: Date | null;
}
