// What the reaper runs, one statement a step, each bounded. See migrations/functions/reap.sql, books.sql,
// partitions.sql, advance-cursors.sql and inspect.sql.
import { sql } from "drizzle-orm";
import { type Backoff, backoffWaits, defaultBackoff } from "../policy/backoff.ts";
import { one, type Statement } from "./statement.ts";

export interface ReapLeases {
  /** In jobs. */
  limit: number;
  /** By type. Jobs of all other types come back after the default. */
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

/** How many jobs could not be reached, and are brought back. */
export function checkReach(): Statement<number> {
  return count("check reach", (schema) => sql`select ${schema}.check_reach() as count`);
}

/** After a step back of the clock: how many stamps were ahead of it. */
export function mendStamps(): Statement<number> {
  return count("mend stamps", (schema) => sql`select ${schema}.mend_stamps() as count`);
}

export function foldLedger({ limit }: { limit: number }): Statement<number> {
  return count("fold ledger", (schema) => sql`select ${schema}.fold_ledger(${limit}::int) as count`);
}

export function addPartitions(): Statement<number> {
  return count("add partitions", (schema) => sql`select ${schema}.add_partitions() as count`);
}

export function dropOldestDay(): Statement<string | null> {
  return {
    name: "drop oldest day",
    isRepeatable: true,
    build: (schema) => sql`select to_char(${schema}.drop_oldest_day(), 'YYYY-MM-DD') as day`,
    decode: one((row) => row.day as string | null),
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
