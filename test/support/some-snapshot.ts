// A snapshot as of a quiet queue; a test names only what it is about.
import type { Group, Snapshot } from "../../src/core/snapshot.ts";

export function someSnapshot(fields: Partial<Snapshot> = {}): Snapshot {
  return {
    at: new Date("2026-01-01T12:00:00Z"),
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
