// recent minutes, durations: for the pairs of queue and type with the most jobs. All others are added up as "other". See
// migrations/functions/shown-pairs.sql.
import type { Durations, Minute } from "../snapshot.ts";
import { sql } from "./sql.ts";
import { many, one, type Statement, time, timeOf } from "./statement.ts";

export function recentMinutes({ pairs }: { pairs: number }): Statement<Minute[]> {
  return {
    name: "recent minutes",
    isRepeatable: true,
    build: (schema) => sql`
      select ${time("minute")}, queue, type, enqueued, completed, failed, expired, ready
      from ${schema}.recent_minutes(${pairs}::int)`,
    decode: many((row) => ({
      minute: timeOf(row.minute),
      queue: String(row.queue),
      type: String(row.type),
      enqueued: Number(row.enqueued),
      completed: Number(row.completed),
      failed: Number(row.failed),
      expired: Number(row.expired),
      ready: Number(row.ready),
    })),
  };
}

export function durations({ pairs }: { pairs: number }): Statement<Durations> {
  return {
    name: "durations",
    isRepeatable: true,
    build: (schema) => sql`select buckets, bounds from ${schema}.durations(${pairs}::int)`,
    decode: one((row) => ({
      buckets: row.buckets as Durations["buckets"],
      bounds: row.bounds as number[],
    })),
  };
}
