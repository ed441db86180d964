// The metrics, made from one snapshot. The number of labels is bounded: the queues and types with the most jobs have
// their own series, and all others are summed up as "other". infra/grafana uses these names.
import type { Counts, Durations, Group, Snapshot } from "../snapshot.ts";
import { type Family, gauge, histogramSamples, type Labels, type Sample } from "./prometheus-text.ts";
import { secondsBetween, waitingFamilies } from "./waiting-metrics.ts";

/** The number of pairs of queue and type. */
export const maxPairs = 200;
const other = { queue: "other", type: "other" };

export function metricsOf(snapshot: Snapshot, durations: Durations): Family[] {
  const bounded = boundedBy(snapshot.groups);
  const groups = snapshot.groups.map((group) => ({ ...group, ...bounded(group) }));
  return [
    ...jobFamilies(groups),
    ...durationFamilies(durations, bounded),
    ...bookFamilies(groups, snapshot),
    ...waitingFamilies(snapshot, {
      shownQueues: new Set(groups.map(({ queue }) => queue)),
      otherQueue: other.queue,
    }),
    ...workFamilies(snapshot, groups),
    ...databaseFamilies(snapshot),
  ];
}

type Pair = Pick<Group, "queue" | "type">;

/** The label of a pair: its own names, or "other". */
function boundedBy(groups: readonly Group[]): (pair: Pair) => Pair {
  const enqueued = new Map<string, number>();
  for (const group of groups) enqueued.set(keyOf(group), (enqueued.get(keyOf(group)) ?? 0) + group.enqueued);
  const shownKeys = new Set(
    [...enqueued]
      .toSorted(([, a], [, b]) => b - a)
      .slice(0, maxPairs)
      .map(([key]) => key),
  );
  return ({ queue, type }) => (shownKeys.has(keyOf({ queue, type })) ? { queue, type } : other);
}

function keyOf({ queue, type }: Pair): string {
  return `${queue} ${type}`;
}

function jobFamilies(groups: readonly Group[]): Family[] {
  const counted = (name: string, help: string, type: "counter" | "gauge", entry: keyof Counts): Family => ({
    ...{ name, help, type },
    samples: sumBy(groups, ({ queue, type }) => ({ queue, type }), entry),
  });
  return [
    {
      name: "sluice_pending_jobs",
      help: "Jobs that wait to be claimed, due or not.",
      type: "gauge",
      samples: sumBy(groups, ({ queue, type, priority }) => ({ queue, type, priority }), "pending"),
    },
    counted("sluice_scheduled_jobs", "Pending jobs that are put off to a later time.", "gauge", "scheduled"),
    counted(
      "sluice_blocked_jobs",
      "Jobs that wait for the end of others or for a signal.",
      "gauge",
      "blocked",
    ),
    counted("sluice_leased_jobs", "Jobs that are being processed.", "gauge", "leased"),
    counted("sluice_dead_jobs", "Dead letters: jobs to replay or to discard.", "gauge", "dead"),
    counted("sluice_enqueued_jobs_total", "Jobs that were enqueued.", "counter", "enqueued"),
    counted("sluice_completed_jobs_total", "Jobs that completed.", "counter", "completed"),
    counted("sluice_failed_attempts_total", "Attempts, not jobs, that failed.", "counter", "failed"),
    counted("sluice_expired_jobs_total", "Jobs buried because their time had passed.", "counter", "expired"),
    counted("sluice_cancelled_jobs_total", "Jobs that were cancelled.", "counter", "cancelled"),
    counted("sluice_discarded_jobs_total", "Dead letters that were discarded.", "counter", "discarded"),
  ];
}

/** One sample for each set of labels. */
function sumBy(groups: readonly Group[], labelsOf: (group: Group) => Labels, entry: keyof Counts): Sample[] {
  const sums = new Map<string, { labels: Labels; value: number }>();
  for (const group of groups) {
    const labels = labelsOf(group);
    const key = JSON.stringify(labels);
    sums.set(key, { labels, value: (sums.get(key)?.value ?? 0) + group[entry] });
  }
  return [...sums.values()];
}

function durationFamilies(durations: Durations, bounded: (pair: Pair) => Pair): Family[] {
  const histogram = (measure: "waiting" | "processing", help: string): Family => ({
    ...{ name: `sluice_job_${measure}_seconds`, help, type: "histogram" },
    samples: durationSamples(durations, measure, bounded),
  });
  return [
    histogram("waiting", "From when a job was due to its first claim."),
    histogram("processing", "From the claim of the attempt that completed a job to its settlement."),
  ];
}

function durationSamples(
  { buckets: counted, bounds }: Durations,
  measure: "waiting" | "processing",
  bounded: (pair: Pair) => Pair,
): Sample[] {
  const histograms = new Map<string, { labels: Labels; buckets: number[]; sum: number }>();
  for (const { bucket, jobs, seconds, ...duration } of counted) {
    if (duration.measure !== measure) continue;
    const { queue, type } = bounded(duration);
    const key = keyOf({ queue, type });
    const histogram = histograms.get(key) ?? { labels: { queue, type }, buckets: [], sum: 0 };
    histogram.buckets[bucket] = (histogram.buckets[bucket] ?? 0) + jobs;
    histograms.set(key, { ...histogram, sum: histogram.sum + seconds });
  }
  return [...histograms.values()].flatMap(({ labels, buckets, sum }) =>
    histogramSamples(labels, { bounds, buckets, sum }),
  );
}

function bookFamilies(groups: readonly Group[], { impossibleStates }: Snapshot): Family[] {
  const sum = (entries: readonly (keyof Counts)[]) =>
    groups.reduce((total, group) => total + entries.reduce((of, entry) => of + group[entry], 0), 0);
  const states = ["blocked", "pending", "leased", "completed", "dead", "discarded", "cancelled"] as const;
  return [
    {
      name: "sluice_books_jobs",
      help: "Both sides of the books, which are equal: jobs enqueued, and jobs in any state.",
      type: "gauge",
      samples: [
        { labels: { side: "enqueued" }, value: sum(["enqueued"]) },
        { labels: { side: "states" }, value: sum(states) },
      ],
    },
    gauge(
      "sluice_impossible_states",
      "Rows that the reaper's inspection found in a state that cannot be; 100: maybe more.",
      impossibleStates.count,
    ),
  ];
}

function workFamilies(snapshot: Snapshot, groups: readonly Group[]): Family[] {
  const { at, rounds, openBreakers, liveWorkers, claimMs, enqueueErrors } = snapshot;
  const open = new Set(openBreakers.map(({ type }) => type));
  const types = new Set([...groups.map(({ type }) => type), ...open]);
  return [
    gauge("sluice_live_workers", "Drains and pullers that hold a live lease or are registered.", liveWorkers),
    {
      name: "sluice_breaker_open",
      help: "1: the type's circuit breaker is open.",
      type: "gauge",
      samples: [...types].map((type) => ({ labels: { type }, value: open.has(type) ? 1 : 0 })),
    },
    {
      name: "sluice_last_round_age_seconds",
      help: "Since the last round of the kind ended.",
      type: "gauge",
      samples: rounds.map(({ kind, endedAt }) => ({ labels: { kind }, value: secondsBetween(endedAt, at) })),
    },
    {
      name: "sluice_last_round_failed",
      help: "1: the last round of the kind failed.",
      type: "gauge",
      samples: rounds.map(({ kind, hasFailed }) => ({ labels: { kind }, value: hasFailed ? 1 : 0 })),
    },
    {
      name: "sluice_claim_seconds",
      help: "The median time of a claim in the last minutes, with what it settled along.",
      type: "gauge",
      samples: claimMs === null ? [] : [{ value: claimMs / 1000 }],
    },
    gauge(
      "sluice_recent_enqueue_errors",
      "Enqueues over HTTP in the last hour that were answered with a 5xx or refused for depth.",
      enqueueErrors.reduce((sum, { errors }) => sum + errors, 0),
    ),
  ];
}

function databaseFamilies({ at, oldestTransaction, tables }: Snapshot): Family[] {
  return [
    gauge(
      "sluice_oldest_transaction_age_seconds",
      "What keeps dead rows alive the longest: a session, a prepared transaction, a slot or a standby; 0: nothing.",
      oldestTransaction?.seconds ?? 0,
    ),
    {
      name: "sluice_table_dead_rows",
      help: "Rows that vacuum has not removed yet.",
      type: "gauge",
      samples: tables.map(({ table, deadRows }) => ({ labels: { table }, value: deadRows })),
    },
    {
      name: "sluice_table_vacuum_age_seconds",
      help: "Since the table was last vacuumed, if ever.",
      type: "gauge",
      samples: tables.flatMap(({ table, vacuumedAt }) =>
        vacuumedAt ? [{ labels: { table }, value: secondsBetween(vacuumedAt, at) }] : [],
      ),
    },
  ];
}
