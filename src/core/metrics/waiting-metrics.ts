// The metrics of what waits: due jobs, leases that ran out, blocked partition keys, and idle flows.
import type { Snapshot } from "../snapshot.ts";
import { type Family, gauge, type Sample } from "./prometheus-text.ts";

interface ShownQueues {
  /** The queues that have series of their own. */
  shownQueues: ReadonlySet<string>;
  otherQueue: string;
}

export function waitingFamilies(snapshot: Snapshot, queues: ShownQueues): Family[] {
  return [...dueFamilies(snapshot), ...blockedFamilies(snapshot, queues), idleFlowFamily(snapshot)];
}

function dueFamilies({ groups, expiredLeaseSeconds }: Snapshot): Family[] {
  const oldest = new Map<number, number>();
  for (const { priority, oldestDueSeconds } of groups)
    oldest.set(priority, Math.max(oldest.get(priority) ?? 0, oldestDueSeconds ?? 0));
  return [
    {
      name: "sluice_oldest_due_age_seconds",
      help: "How long the job that has been due the longest waits; 0: none is due.",
      type: "gauge",
      samples: [...oldest].map(([priority, value]) => ({ labels: { priority }, value })),
    },
    gauge(
      "sluice_expired_lease_age_seconds",
      "How long the lease that ran out first waits for the reaper; 0: none does.",
      expiredLeaseSeconds,
    ),
  ];
}

/** A queue that has no series of its own counts as "other". */
function blockedFamilies({ at, blockedKeys }: Snapshot, { shownQueues, otherQueue }: ShownQueues): Family[] {
  const byQueue = new Map<string, { keys: number; seconds: number }>();
  for (const { queue, keys, since } of blockedKeys) {
    const label = shownQueues.has(queue) ? queue : otherQueue;
    const sum = byQueue.get(label) ?? { keys: 0, seconds: 0 };
    const seconds = Math.max(sum.seconds, since ? secondsBetween(since, at) : 0);
    byQueue.set(label, { keys: sum.keys + keys, seconds });
  }
  const samplesOf = (field: "keys" | "seconds"): Sample[] =>
    [...byQueue].map(([queue, sum]) => ({ labels: { queue }, value: sum[field] }));
  return [
    {
      name: "sluice_blocked_partitions",
      help: "Partition keys that stand still behind a dead job.",
      type: "gauge",
      samples: samplesOf("keys"),
    },
    {
      name: "sluice_blocked_partition_age_seconds",
      help: "How long the partition key that was blocked first has stood still; 0: none does.",
      type: "gauge",
      samples: samplesOf("seconds"),
    },
  ];
}

function idleFlowFamily({ at, idleFlows: [longest] }: Snapshot): Family {
  return gauge(
    "sluice_idle_flow_age_seconds",
    "How long the running flow that changed the longest time ago has made no progress; 0: none runs.",
    longest ? secondsBetween(longest.since, at) : 0,
  );
}

export function secondsBetween(from: Date, to: Date): number {
  return Math.max(0, (to.getTime() - from.getTime()) / 1000);
}
