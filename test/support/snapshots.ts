// Snapshots for tests of the alarm rules. A test names only the values that matter to it.
import type { Group, Minute, Snapshot } from "../../src/core/snapshot.ts";

export const at = new Date("2026-03-04T10:00:30Z"); // a Wednesday
export const minutesAgo = (minutes: number) => new Date(at.getTime() - minutes * 60_000);

/** A healthy queue: rounds on time, no waiting jobs, running for a day. */
export function snapshotOf(fields: Partial<Snapshot> = {}): Snapshot {
  return {
    at,
    groups: [],
    minutes: [],
    rounds: (["drain", "reap", "watch"] as const).map((kind) => ({
      kind,
      endedAt: minutesAgo(1),
      hasFailed: false,
    })),
    recentRounds: [],
    runningSince: minutesAgo(24 * 60),
    openBreakers: [],
    liveWorkers: 0,
    expiredLeaseSeconds: 0,
    oldestTransaction: null,
    tables: [],
    claimMs: null,
    enqueueErrors: [],
    impossibleStates: { count: 0, example: null },
    blockedKeys: [],
    idleFlows: [],
    ...fields,
  };
}

/** Balanced books: all jobs without another state are completed. */
export function groupOf(counts: Partial<Group> = {}): Group {
  const { pending = 0, leased = 0, dead = 0, completed = 0 } = counts;
  return {
    queue: "default",
    type: "echo",
    priority: 5,
    oldestDueSeconds: null,
    enqueued: pending + leased + dead + completed,
    pending,
    leased,
    completed,
    dead,
    scheduled: 0,
    blocked: 0,
    discarded: 0,
    cancelled: 0,
    failed: 0,
    expired: 0,
    ...counts,
  };
}

/** 0 is the current minute. */
export function minuteOf(ago: number, counts: Partial<Minute> = {}): Minute {
  const minute = new Date((Math.floor(at.getTime() / 60_000) - ago) * 60_000);
  return {
    minute,
    queue: "default",
    type: "echo",
    enqueued: 0,
    completed: 0,
    failed: 0,
    expired: 0,
    ready: 0,
    ...counts,
  };
}
