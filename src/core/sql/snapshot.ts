// snapshot: the state of all queues. See migrations/functions/snapshot.sql.
import type {
  BlockedQueue,
  Group,
  IdleFlow,
  ImpossibleStates,
  LastRound,
  Minute,
  OldestTransaction,
  RecentRound,
  RoundKind,
  Snapshot,
  TableHealth,
} from "../snapshot.ts";
import { sql } from "./sql.ts";
import { one, type Row, type Statement, time, timeOf, timeOrNull } from "./statement.ts";

/** `windows` are the lengths in minutes of the windows that need sums. */
export function snapshot({ windows = [] }: { windows?: readonly number[] } = {}): Statement<Snapshot> {
  return {
    name: "snapshot",
    isRepeatable: true,
    build: (schema) => sql`
      select ${time("at")}, groups, minutes, rounds, ${time("running_since")}, open_breakers, live_workers, expired_lease_seconds,
             oldest_transaction, tables, claim_ms, enqueue_errors, impossible_states, blocked_keys,
             idle_flows
      from ${schema}.snapshot(${windows}::int[])`,
    decode: one(decodeSnapshot),
  };
}

/** An object of the JSON: the names are in snake_case, and times are text. */
type AsJson<T> = {
  [Field in keyof T as SnakeCase<Field & string>]: T[Field] extends Date
    ? string
    : T[Field] extends Date | null
      ? string | null
      : T[Field];
};
type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Name;

function decodeSnapshot(row: Row): Snapshot {
  const recentRounds = toRows<RecentRound>(row.rounds).map(({ started_at, ended_at, ...round }) => ({
    ...round,
    startedAt: new Date(started_at),
    endedAt: new Date(ended_at),
  }));
  return {
    at: timeOf(row.at),
    groups: toRows<Group>(row.groups).map(({ oldest_due_seconds: oldestDueSeconds, ...group }) => ({
      ...group,
      oldestDueSeconds,
    })),
    minutes: toRows<Minute>(row.minutes).map(withMinute),
    rounds: newestOfEach(recentRounds),
    recentRounds,
    runningSince: timeOrNull(row.running_since),
    openBreakers: toRows<Snapshot["openBreakers"][number]>(row.open_breakers).map(({ type, opened_at }) => ({
      type,
      openedAt: new Date(opened_at),
    })),
    liveWorkers: Number(row.live_workers),
    expiredLeaseSeconds: Number(row.expired_lease_seconds),
    oldestTransaction: row.oldest_transaction as OldestTransaction | null,
    tables: toRows<TableHealth>(row.tables).map(({ table, dead_rows, vacuumed_at }) => ({
      table,
      deadRows: dead_rows,
      vacuumedAt: vacuumed_at === null ? null : new Date(vacuumed_at),
    })),
    claimMs: row.claim_ms === null ? null : Number(row.claim_ms),
    enqueueErrors: toRows<Snapshot["enqueueErrors"][number]>(row.enqueue_errors).map(withMinute),
    impossibleStates: row.impossible_states as ImpossibleStates,
    blockedKeys: toRows<BlockedQueue>(row.blocked_keys).map(({ queue, keys, since, job_id: jobId }) => ({
      queue,
      keys,
      since: since === null ? null : new Date(since),
      jobId,
    })),
    idleFlows: toRows<IdleFlow>(row.idle_flows).map(({ flow_id: flowId, since }) => ({
      flowId,
      since: new Date(since),
    })),
  };
}

function toRows<T>(json: unknown): AsJson<T>[] {
  return (json as AsJson<T>[] | null) ?? [];
}

function withMinute<T extends { minute: string }>(entry: T): Omit<T, "minute"> & { minute: Date } {
  return { ...entry, minute: new Date(entry.minute) };
}

/** The rounds are sorted, newest first. */
function newestOfEach(rounds: readonly RecentRound[]): LastRound[] {
  const newest = new Map<RoundKind, LastRound>();
  for (const { kind, endedAt, reason } of rounds)
    if (!newest.has(kind)) newest.set(kind, { kind, endedAt, hasFailed: reason === "error" });
  return [...newest.values()];
}
