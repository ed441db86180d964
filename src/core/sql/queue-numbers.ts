// queue numbers: one queue by priority, and its keys with the most waiting jobs. See migrations/functions/queue-numbers.sql.
import { sql } from "./sql.ts";
import { one, type Row, type Statement, time, timeOrNull } from "./statement.ts";

export interface QueueNumbers {
  /** One for each priority that ever had a job. */
  priorities: readonly PriorityNumbers[];
  /** Null: no job is due. */
  oldestDueSeconds: number | null;
  pausedSince: Date | null;
  /** The keys with the most jobs among the `looked` oldest waiting ones. */
  keys: { looked: number; top: readonly TopKey[] };
  /** The partition keys that stand still behind a dead job, counted up to 10,000 for each type and priority. */
  blockedKeys: number;
  /** What the deployment last said about the queue's keys. Null: nothing. */
  policy: { onDead: "block" | "pass"; concurrency: number | null; secondsApart: number | null } | null;
}

export interface PriorityNumbers {
  priority: number;
  pending: number;
  /** The pending jobs that are not due. */
  scheduled: number;
  leased: number;
  blocked: number;
  completed: number;
  dead: number;
}

export interface TopKey {
  kind: "partition" | "fair";
  key: string;
  waiting: number;
  /** Its jobs under a lease. */
  running: number;
}

/** `looked`: how many of the oldest waiting jobs of each type and priority are looked at. */
export function queueNumbers(
  queue: string,
  { keys = 10, looked = 2_000 }: { keys?: number; looked?: number } = {},
): Statement<QueueNumbers> {
  return {
    name: "queue numbers",
    isRepeatable: true,
    build: (schema) => sql`
      select priorities, oldest_due_seconds, ${time("paused_since")}, keys, blocked, policy
      from ${schema}.queue_numbers(${queue}::text, ${keys}::int, ${looked}::int)`,
    decode: one(decodeNumbers),
  };
}

function decodeNumbers(row: Row): QueueNumbers {
  const { looked = 0, keys: top = [] } = (row.keys ?? {}) as { looked?: number; keys?: TopKey[] };
  const policy = row.policy as Row | null;
  return {
    priorities: (row.priorities ?? []) as PriorityNumbers[],
    oldestDueSeconds: row.oldest_due_seconds as number | null,
    pausedSince: timeOrNull(row.paused_since),
    keys: { looked, top },
    blockedKeys: Number((row.blocked as Row | null)?.keys ?? 0),
    policy: policy && {
      onDead: policy.on_dead as "block" | "pass",
      concurrency: policy.concurrency as number | null,
      secondsApart: policy.seconds_apart as number | null,
    },
  };
}
