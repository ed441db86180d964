// What an alarm is: its name, the rule that watches for it, what a round saw, and the state that is kept between rounds.
import type { ActiveHours } from "./active-hours.ts";

export const alarmNames = [
  "completion_rate_low",
  "queue_length_high",
  "queue_growing",
  "oldest_pending_high",
  "job_expired",
  "dead_letters",
  "breaker_open",
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

/** A job of our own, enqueued every watch round by the ordinary way: its completion proves the whole of it. */
export const canary = { type: "sluice.canary", queue: "sluice" } as const;

/** Sluice's own: lists and sums of the users' jobs leave it out. */
export function isCanary({ type }: { type: string }): boolean {
  return type === canary.type;
}

/** Types that only the Worker itself enqueues. */
export function isOwnType(type: string): boolean {
  return type.startsWith("sluice.");
}

/** Identifies an alarm: its name, and the queue and the type that it is about. Null: all of them. */
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
  /** `above`; for completion_rate_low `per_minute_below`. In the alarm's own unit: jobs, seconds, errors. */
  threshold: number;
  /** In place of the threshold for jobs of that priority; oldest_pending_high alone has it. */
  thresholdByPriority: Readonly<Record<number, number>>;
  windowMinutes: number;
  /** Nothing is observed until the deployment has run for so long. */
  graceMinutes: number;
  /** It fires when so many … */
  forRounds: number;
  /** … of the last so many rounds were bad, */
  ofRounds: number;
  /** and is resolved after so many rounds in a row that were clearly good. */
  clearRounds: number;
  severity: Severity;
  repeatMinutes: number;
  silencedUntil: Date | null;
  activeHours: ActiveHours | null;
}

/** What one round saw. Between bad and clear there is a band, so that noise around a threshold changes nothing. */
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
  /** When the trouble was first seen. */
  since: Date;
  changedAt: Date;
  /** The last rounds until it fires: which of them were bad. */
  recent: readonly boolean[];
  /** Clearly good rounds in a row while it fires. */
  clearRounds: number;
  /** The phase that the targets were last notified of. During a silence it lags behind the phase. */
  notified: "ok" | "firing";
  notifiedAt: Date | null;
  severity: Severity;
  value: number | null;
  threshold: number;
  summary: string;
}

/** What a target is notified of. */
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

/** How deliveries to a target go. */
export interface TargetHealth {
  name: string;
  /** When it answered 410. It gets nothing more until its URL changes or a test notice succeeds. */
  goneSince: Date | null;
  failingSince: Date | null;
}
