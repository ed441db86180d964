// raise cache probe, read cache probe: they show whether something between Postgres and us answers from a cache. See
// migrations/functions/cache-probe.sql.
import { sql } from "./sql.ts";
import { one, type Statement } from "./statement.ts";

export function raiseCacheProbe(): Statement<number> {
  return {
    name: "raise cache probe",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.raise_cache_probe() as number`,
    decode: one((row) => Number(row.number)),
  };
}

/** A plain select that a cache may keep: every call has the same text, and it calls no function. */
export function readCacheProbe(): Statement<number> {
  return {
    name: "read cache probe",
    isRepeatable: true,
    mayBeCached: true,
    build: (schema) => sql`select last_value as number from ${schema}.cache_probe`,
    decode: one((row) => Number(row.number)),
  };
}
