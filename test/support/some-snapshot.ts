// Snapshots as of a quiet queue, where a test names only what it is about, and as of a busy one.
import type { Group, Snapshot } from "../../src/core/snapshot.ts";

const at = new Date("2026-01-01T12:00:00Z");

export function someSnapshot(fields: Partial<Snapshot> = {}): Snapshot {
  return {
    at,
    groups: [],
    minutes: [],
    rounds: [],
    recentRounds: [],
    runningSince: null,
    openBreakers: [],
    liveWorkers: 0,
    expiredLeaseSeconds: 0,
    oldestTransaction: null,
    tables: [],
    claimMs: null,
    enqueueErrors: [],
    durations: [],
    durationBounds: [1, 10],
    ...fields,
  };
}

export function someGroup(fields: Partial<Group> = {}): Group {
  return {
    ...{ queue: "default", type: "echo", priority: 5, oldestDueSeconds: null },
    ...{ enqueued: 0, pending: 0, leased: 0, completed: 0, dead: 0, discarded: 0, cancelled: 0 },
    ...{ failed: 0, expired: 0 },
    ...fields,
  };
}

/** Something of everything. */
export const fullSnapshot = someSnapshot({
  groups: [
    someGroup({ priority: 9, enqueued: 10, pending: 4, completed: 6, oldestDueSeconds: 3 }),
    someGroup({ priority: 1, enqueued: 5, pending: 3, leased: 1, dead: 1, failed: 7, oldestDueSeconds: 90 }),
    someGroup({ queue: "heavy", type: "image", enqueued: 2, discarded: 1, cancelled: 1, expired: 1 }),
  ],
  rounds: [
    { kind: "drain", endedAt: new Date("2026-01-01T11:59:00Z"), hasFailed: false },
    { kind: "reap", endedAt: new Date("2026-01-01T11:58:00Z"), hasFailed: true },
  ],
  openBreakers: [{ type: "image", openedAt: at }],
  liveWorkers: 3,
  expiredLeaseSeconds: 12,
  oldestTransaction: { seconds: 3600, source: "slot" },
  tables: [
    { table: "ready", deadRows: 100, vacuumedAt: new Date("2026-01-01T11:00:00Z") },
    { table: "lease", deadRows: 0, vacuumedAt: null },
  ],
  claimMs: 4,
  enqueueErrors: [
    { minute: at, errors: 2 },
    { minute: at, errors: 3 },
  ],
  durations: [
    { queue: "default", type: "echo", measure: "waiting", bucket: 0, jobs: 4, seconds: 2 },
    { queue: "default", type: "echo", measure: "waiting", bucket: 2, jobs: 1, seconds: 60 },
    { queue: "default", type: "echo", measure: "processing", bucket: 1, jobs: 5, seconds: 20 },
  ],
});
