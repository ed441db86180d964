// What each alarm measures, and when it fires, in words.
import type { AlarmName, AlarmRule } from "../../../core/alarms/alarm.ts";
import { count, counted, wholeSeconds } from "../../parts/numbers.ts";

type Limit = Pick<AlarmRule, "threshold" | "windowMinutes">;

interface Words {
  measures: string;
  firesWhen(limit: Limit): string;
  /** How a value is written. Without it, as a number. */
  isSeconds?: boolean;
}

const longer = ({ threshold }: Limit) => `longer than ${wholeSeconds(threshold)}`;
const more = ({ threshold }: Limit) => (threshold === 0 ? "any" : `more than ${count(threshold)}`);
const moreIn = (limit: Limit) => `${more(limit)} in ${count(limit.windowMinutes)} min`;

const words: Record<AlarmName, Words> = {
  completion_rate_low: {
    measures: "Jobs that complete a minute. By default those of the canary",
    firesWhen: ({ threshold, windowMinutes }) =>
      `fewer than ${counted(Math.ceil(threshold * windowMinutes), "job")} in ${count(windowMinutes)} min`,
  },
  queue_length_high: { measures: "Waiting jobs of a queue", firesWhen: more },
  queue_growing: { measures: "By how much a queue grows", firesWhen: moreIn },
  oldest_pending_high: {
    measures: "For how long the oldest due job of a queue has waited",
    firesWhen: longer,
    isSeconds: true,
  },
  job_expired: { measures: "Jobs that were not done by their expires_at", firesWhen: moreIn },
  dead_letters: { measures: "Dead letters of a type", firesWhen: more },
  breaker_open: {
    measures: "For how long a circuit breaker has been open",
    firesWhen: (limit) => (limit.threshold === 0 ? "any is open" : longer(limit)),
    isSeconds: true,
  },
  partition_blocked: {
    measures: "For how long a partition key has stood still behind a dead job",
    firesWhen: longer,
    isSeconds: true,
  },
  flow_stalled: {
    measures: "For how long a flow has made no progress",
    firesWhen: longer,
    isSeconds: true,
  },
  oldest_transaction: {
    measures: "For how long the oldest transaction has been open",
    firesWhen: longer,
    isSeconds: true,
  },
  round_overdue: {
    measures: "How long ago the last rounds were",
    firesWhen: ({ threshold }) => `older than ${wholeSeconds(threshold)}`,
    isSeconds: true,
  },
  enqueue_errors: { measures: "Enqueues that failed or were refused", firesWhen: moreIn },
  books_unbalanced: {
    measures: "By how much the books differ from the jobs",
    firesWhen: ({ threshold }) => (threshold === 0 ? "any difference" : `more than ${count(threshold)}`),
  },
  target_failing: {
    measures: "For how long a target of notices has failed",
    firesWhen: longer,
    isSeconds: true,
  },
  jobs_unreachable: { measures: "Jobs that the last reap rounds had to bring back", firesWhen: more },
};

export function measures(alarm: AlarmName): string {
  return words[alarm].measures;
}

export function firesWhen(alarm: AlarmName, limit: Limit): string {
  return words[alarm].firesWhen(limit);
}

export function formatValue(alarm: AlarmName, value: number): string {
  return words[alarm].isSeconds ? wholeSeconds(Math.round(value)) : count(value);
}
