// The page of metrics: its content, and that Prometheus can read it.
import { describe, expect, test } from "vitest";
import { maxPairs, metricsOf } from "../../src/core/metrics/metrics.ts";
import { toText } from "../../src/core/metrics/prometheus-text.ts";
import type { Durations, Snapshot } from "../../src/core/snapshot.ts";
import { fullSnapshot as full, fullDurations } from "../support/full-snapshot.ts";
import { parseMetrics } from "../support/prometheus-lint.ts";
import { at, groupOf, snapshotOf } from "../support/snapshots.ts";

const read = (snapshot: Snapshot, durations = fullDurations) =>
  parseMetrics(toText(metricsOf(snapshot, durations)));
const samplesOf = (snapshot: Snapshot, name: string, durations?: Durations) =>
  read(snapshot, durations)
    .families.flatMap(({ lines }) => lines)
    .filter((line) => line.name === name);
const valuesOf = (snapshot: Snapshot, name: string) =>
  samplesOf(snapshot, name).map(({ labels, value }) => [Object.values(labels).join(" "), value]);

describe("the metrics page", () => {
  test.each([
    ["a full snapshot", full],
    ["an empty one", snapshotOf({ rounds: [] })],
  ])("of %s follows the format's rules", (_, snapshot) => {
    expect(read(snapshot).faults).toEqual([]);
  });

  test("has depth by queue, type and priority, and totals by queue and type", () => {
    expect(valuesOf(full, "sluice_pending_jobs")).toEqual([
      ["default echo 9", 4],
      ["default echo 1", 3],
      ["heavy image 5", 0],
    ]);
    expect(valuesOf(full, "sluice_enqueued_jobs_total")).toEqual([
      ["default echo", 15],
      ["heavy image", 2],
    ]);
    expect(valuesOf(full, "sluice_dead_jobs")).toContainEqual(["default echo", 1]);
    expect(valuesOf(full, "sluice_failed_attempts_total")).toContainEqual(["default echo", 7]);
  });

  test("shows both sides of the books", () => {
    expect(valuesOf(full, "sluice_books_jobs")).toEqual([
      ["enqueued", 17],
      ["states", 17],
    ]);
    expect(valuesOf(full, "sluice_impossible_states")).toEqual([["", 2]]);
  });

  test("shows the oldest due job of each priority, rounds, breakers, and the database", () => {
    expect(valuesOf(full, "sluice_oldest_due_age_seconds")).toEqual([
      ["9", 3],
      ["1", 90],
      ["5", 0],
    ]);
    expect(valuesOf(full, "sluice_last_round_age_seconds")).toEqual([
      ["drain", 60],
      ["reap", 120],
    ]);
    expect(valuesOf(full, "sluice_last_round_failed")).toEqual([
      ["drain", 0],
      ["reap", 1],
    ]);
    expect(valuesOf(full, "sluice_breaker_open")).toEqual([
      ["echo", 0],
      ["image", 1],
    ]);
    expect(valuesOf(full, "sluice_oldest_transaction_age_seconds")).toEqual([["", 3600]]);
    expect(valuesOf(full, "sluice_table_dead_rows")).toEqual([
      ["ready", 100],
      ["lease", 0],
    ]);
    expect(valuesOf(full, "sluice_table_vacuum_age_seconds")).toEqual([["ready", 3600]]);
    expect(valuesOf(full, "sluice_claim_seconds")).toEqual([["", 0.004]]);
    expect(valuesOf(full, "sluice_recent_enqueue_errors")).toEqual([["", 5]]);
  });

  test("shows the blocked partition keys of each queue, and how long the first one stands still", () => {
    expect(valuesOf(full, "sluice_blocked_partitions")).toEqual([
      ["default", 3],
      ["heavy", 0],
    ]);
    expect(valuesOf(full, "sluice_blocked_partition_age_seconds")).toEqual([
      ["default", 1200],
      ["heavy", 0],
    ]);
  });

  test("shows how long the running flow that changed the longest time ago makes no progress", () => {
    expect(valuesOf(full, "sluice_idle_flow_age_seconds")).toEqual([["", 3000]]);
    expect(valuesOf(snapshotOf({}), "sluice_idle_flow_age_seconds")).toEqual([["", 0]]);
  });

  test("has cumulative histograms", () => {
    expect(valuesOf(full, "sluice_job_waiting_seconds_bucket")).toEqual([
      ["default echo 1", 4],
      ["default echo 10", 4],
      ["default echo +Inf", 5],
    ]);
    expect(valuesOf(full, "sluice_job_waiting_seconds_sum")).toEqual([["default echo", 62]]);
    expect(valuesOf(full, "sluice_job_processing_seconds_count")).toEqual([["default echo", 5]]);
  });
});

describe("labels", () => {
  const crowd = Array.from({ length: 3 * maxPairs }, (_, n) =>
    groupOf({ type: `type-${n}`, priority: n % 10, enqueued: n + 1, pending: n + 1, oldestDueSeconds: n }),
  );
  const buckets = crowd.map(({ queue, type }) => ({
    ...{ queue, type, measure: "waiting" as const, bucket: 0, jobs: 1, seconds: 1 },
  }));
  const crowded = snapshotOf({ groups: crowd });

  test("name the types with the most jobs, and one sum has the rest", () => {
    const enqueued = samplesOf(crowded, "sluice_enqueued_jobs_total");
    expect(enqueued).toHaveLength(maxPairs + 1);
    expect(enqueued.reduce((sum, line) => sum + line.value, 0)).toBe((600 * 601) / 2);
    expect(enqueued.find(({ labels }) => labels.type === "other")?.value).toBe((400 * 401) / 2);
    expect(enqueued.map(({ labels }) => labels.type)).toContain("type-599");
    expect(read(crowded).faults).toEqual([]);
    expect(samplesOf(crowded, "sluice_breaker_open")).toHaveLength(maxPairs + 1);
    expect(samplesOf(crowded, "sluice_job_waiting_seconds_count", { buckets, bounds: [1] })).toHaveLength(
      maxPairs + 1,
    );
  });

  test("of blocked partition keys name the queues with the most jobs, and one sum has the rest", () => {
    const groups = crowd.map((group, n) => ({ ...group, queue: `queue-${n}` }));
    const blockedKeys = groups.map(({ queue }) => ({ queue, keys: 2, since: at, jobId: "7" }));
    const samples = samplesOf(snapshotOf({ groups, blockedKeys }), "sluice_blocked_partitions");
    expect(samples).toHaveLength(maxPairs + 1);
    expect(samples.find(({ labels }) => labels.queue === "other")?.value).toBe(2 * (3 * maxPairs - maxPairs));
  });

  test("with quotes, backslashes and line breaks are escaped", () => {
    const text = toText([
      { name: "a", help: "b\\c\nd", type: "gauge", samples: [{ labels: { l: 'x"y\\z\n' }, value: 1 }] },
    ]);
    expect(text).toBe('# HELP a b\\\\c\\nd\n# TYPE a gauge\na{l="x\\"y\\\\z\\n"} 1\n');
    expect(parseMetrics(text).faults).toEqual([]);
  });
});

test("the format check of these tests finds faults", () => {
  const wrong = [
    "a_total 1\n",
    "# HELP a b\n# TYPE a counter\na 1\n",
    "# HELP a_total b\n# TYPE a_total gauge\na_total 1\n",
    "# HELP a_ms b\n# TYPE a_ms gauge\na_ms 1\n",
    '# HELP a b\n# TYPE a gauge\na{l="1"} 1\na{l="1"} 2\n',
    '# HELP a b\n# TYPE a gauge\na{9="1"} 1\n',
    "# HELP a b\n# TYPE a gauge\na one\n",
    '# HELP a b\n# TYPE a histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n',
    '# HELP a b\n# TYPE a histogram\na_bucket{le="1"} 1\na_sum 1\na_count 1\n',
    '# HELP a b\n# TYPE a histogram\na_bucket{le="+Inf"} 1\na_sum 1\na_count 2\n',
  ];
  for (const text of wrong) expect([text, parseMetrics(text).faults.length > 0]).toEqual([text, true]);
});
