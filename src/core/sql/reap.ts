// The statements of the reap round, one for each step. Each has a limit. See migrations/functions/reap.sql, books.sql,
// partitions.sql, advance-cursors.sql, sweep-blocked.sql, flows.sql and inspect.sql.
import { type Backoff, backoffWaits, defaultBackoff } from "../policy/backoff.ts";
import { sql } from "./sql.ts";
import { one, type Statement } from "./statement.ts";

export interface ReapLeases {
  /** The most jobs of one call. */
  limit: number;
  /** The backoff of each type. Jobs of other types wait for the default backoff. */
  backoffs?: Readonly<Record<string, Backoff>>;
}

export function reapLeases({
  limit,
  backoffs = {},
}: ReapLeases): Statement<{ returned: number; buried: number }> {
  const toWaits = (backoff: Backoff) => ({ waits: backoffWaits(backoff), jitter: backoff.jitterSeconds });
  const types = Object.entries(backoffs).map(([type, backoff]) => [type, toWaits(backoff)]);
  const waits = { default: toWaits(defaultBackoff), types: Object.fromEntries(types) };
  return {
    name: "reap leases",
    isRepeatable: true,
    build: (schema) => sql`
      select returned, buried from ${schema}.reap_leases(${limit}::int, ${JSON.stringify(waits)}::jsonb)`,
    decode: one((row) => ({ returned: Number(row.returned), buried: Number(row.buried) })),
  };
}

export function reapExpired({ limit }: { limit: number }): Statement<number> {
  return count("reap expired", (schema) => sql`select ${schema}.reap_expired(${limit}::int) as count`);
}

export function advanceCursors(): Statement<null> {
  return {
    name: "advance cursors",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.advance_cursors()`,
    decode: () => null,
  };
}

/** Makes jobs claimable again that no claim could find, and answers how many. */
export function checkReach(): Statement<number> {
  return count("check reach", (schema) => sql`select ${schema}.check_reach() as count`);
}

/** Reads the events for waiting jobs of queues that nobody claims from. Answers how many such queues there were. */
export function resolveQueues(): Statement<number> {
  return count("resolve queues", (schema) => sql`select ${schema}.resolve_queues() as count`);
}

/** Releases jobs that wait although all they wait for has ended, and answers how many. It should find none. */
export function sweepBlocked({ limit }: { limit: number }): Statement<number> {
  return count("sweep blocked", (schema) => sql`select ${schema}.sweep_blocked(${limit}::int) as count`);
}

/** Sets times in the future to now, after the clock has stepped back. Answers how many there were. */
export function mendStamps(): Statement<number> {
  return count("mend stamps", (schema) => sql`select ${schema}.mend_stamps() as count`);
}

export function foldLedger({ limit }: { limit: number }): Statement<number> {
  return count("fold ledger", (schema) => sql`select ${schema}.fold_ledger(${limit}::int) as count`);
}

export function foldFlows({ limit }: { limit: number }): Statement<number> {
  return count("fold flows", (schema) => sql`select ${schema}.fold_flows(${limit}::int) as count`);
}

export function addPartitions(): Statement<number> {
  return count("add partitions", (schema) => sql`select ${schema}.add_partitions() as count`);
}

export function dropOldestDay(): Statement<string | null> {
  return {
    name: "drop oldest day",
    isRepeatable: true,
    build: (schema) => sql`select to_char(${schema}.drop_oldest_day(), 'YYYY-MM-DD') as day`,
    decode: one((row) => (row.day === null ? null : String(row.day))),
  };
}

export function prune({ limit }: { limit: number }): Statement<number> {
  return count("prune", (schema) => sql`select ${schema}.prune(${limit}::int) as count`);
}

export function inspect(): Statement<{ looked: number; wrong: number }> {
  return {
    name: "inspect",
    isRepeatable: true,
    build: (schema) => sql`select looked, wrong from ${schema}.inspect()`,
    decode: one((row) => ({ looked: Number(row.looked), wrong: Number(row.wrong) })),
  };
}

function count(name: string, build: Statement<number>["build"]): Statement<number> {
  return { name, isRepeatable: true, build, decode: one((row) => Number(row.count)) };
}
