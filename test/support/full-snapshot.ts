// A snapshot with a value for every metric.
import type { Durations } from "../../src/core/snapshot.ts";
import { at, groupOf, minutesAgo, snapshotOf } from "./snapshots.ts";

export const fullSnapshot = snapshotOf({
  groups: [
    groupOf({ priority: 9, enqueued: 10, pending: 4, completed: 6, oldestDueSeconds: 3 }),
    groupOf({ priority: 1, enqueued: 5, pending: 3, leased: 1, dead: 1, failed: 7, oldestDueSeconds: 90 }),
    groupOf({ queue: "heavy", type: "image", enqueued: 2, discarded: 1, cancelled: 1, expired: 1 }),
  ],
  rounds: [
    { kind: "drain", endedAt: minutesAgo(1), hasFailed: false },
    { kind: "reap", endedAt: minutesAgo(2), hasFailed: true },
  ],
  openBreakers: [{ type: "image", openedAt: at }],
  liveWorkers: 3,
  expiredLeaseSeconds: 12,
  oldestTransaction: { seconds: 3600, source: "slot" },
  tables: [
    { table: "ready", deadRows: 100, vacuumedAt: minutesAgo(60) },
    { table: "lease", deadRows: 0, vacuumedAt: null },
  ],
  claimMs: 4,
  enqueueErrors: [
    { minute: at, errors: 2 },
    { minute: at, errors: 3 },
  ],
  blockedKeys: [
    { queue: "default", keys: 3, since: minutesAgo(20), jobId: "8" },
    { queue: "heavy", keys: 0, since: null, jobId: null },
  ],
  idleFlows: [
    { flowId: "9", since: minutesAgo(50) },
    { flowId: "10", since: minutesAgo(2) },
  ],
  impossibleStates: { count: 2, example: { kind: "job", id: "7", what: "is in ready and lease at once" } },
});

export const fullDurations: Durations = {
  bounds: [1, 10],
  buckets: [
    { queue: "default", type: "echo", measure: "waiting", bucket: 0, jobs: 4, seconds: 2 },
    { queue: "default", type: "echo", measure: "waiting", bucket: 2, jobs: 1, seconds: 60 },
    { queue: "default", type: "echo", measure: "processing", bucket: 1, jobs: 5, seconds: 20 },
  ],
};
