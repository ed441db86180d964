// Looks at a place where all is well: rounds on time, running for a day. A test names only what it is about.
import type { Group, Minute, Snapshot } from "../../src/core/snapshot.ts";
import { someGroup, someSnapshot } from "./some-snapshot.ts";

export const at = new Date("2026-03-04T10:00:30Z"); // a Wednesday
export const minutesAgo = (minutes: number) => new Date(at.getTime() - minutes * 60_000);

export function snapshotOf(seen: Partial<Snapshot> = {}): Snapshot {
  const rounds = (["drain", "reap", "watch"] as const).map((kind) => ({
    kind,
    endedAt: minutesAgo(1),
    hasFailed: false,
  }));
  return someSnapshot({ at, rounds, runningSince: minutesAgo(24 * 60), ...seen });
}

/** Balanced, unless a test says otherwise. */
export function groupOf(counts: Partial<Group> = {}): Group {
  const { pending = 0, leased = 0, dead = 0, completed = 0 } = counts;
  return someGroup({ enqueued: pending + leased + dead + completed, ...counts });
}

/** 0: the running minute. */
export function minuteOf(ago: number, counts: Partial<Minute> = {}): Minute {
  const minute = new Date((Math.floor(at.getTime() / 60_000) - ago) * 60_000);
  const none = { enqueued: 0, completed: 0, failed: 0, expired: 0 };
  return { minute, queue: "default", type: "echo", ...none, ...counts };
}
