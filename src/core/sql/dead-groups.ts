// list dead groups, count dead, fold deaths. See migrations/functions/dead-groups.sql.
import type { DeadGroup, DeadLetterFilter } from "../dead-letters.ts";
import type { DeadReason } from "../job.ts";
import { sql } from "./sql.ts";
import { many, one, type Row, type Statement, time, timeOf } from "./statement.ts";

export interface DeadGroups {
  groups: DeadGroup[];
  /** Of all that match, also of those that are not on the page. */
  totalGroups: number;
  totalDead: number;
}

/** The largest first. */
export function listDeadGroups({
  type,
  reason,
  queue,
  limit,
}: Pick<DeadLetterFilter, "type" | "reason" | "queue"> & { limit: number }): Statement<DeadGroups> {
  const decodeRows = many((row) => ({
    group: decodeGroup(row),
    groups: Number(row.groups),
    total: Number(row.total),
  }));
  return {
    name: "list dead groups",
    isRepeatable: true,
    build: (schema) => sql`
      select type, reason, lpad(to_hex(fingerprint), 16, '0') as fingerprint, dead, ${time("first_at")}, ${time("last_at")},
             groups, total, newest_id, error, pattern, to_json(hours) as hours
      from ${schema}.dead_groups(${type ?? null}::text, ${reason ?? null}::text, ${queue ?? null}::text, ${limit}::int)`,
    decode: (rows) => {
      const decoded = decodeRows(rows);
      return {
        groups: decoded.map(({ group }) => group),
        totalGroups: decoded[0]?.groups ?? 0,
        totalDead: decoded[0]?.total ?? 0,
      };
    },
  };
}

function decodeGroup(row: Row): DeadGroup {
  return {
    type: String(row.type),
    reason: row.reason as DeadReason,
    fingerprint: String(row.fingerprint),
    count: Number(row.dead),
    firstAt: timeOf(row.first_at),
    lastAt: timeOf(row.last_at),
    newestId: String(row.newest_id),
    error: row.error as string | null,
    pattern: row.pattern as string | null,
    hours: row.hours as number[],
  };
}

/** How many dead letters match, and the time of the count: a run until then takes no others. */
export function countDead(filter: DeadLetterFilter): Statement<{ dead: number; at: Date }> {
  return {
    name: "count dead",
    isRepeatable: true,
    build: (schema) => sql`
      select ${schema}.count_dead(
        ${filter.type ?? null}::text,
        ${filter.reason ?? null}::text,
        ('x' || ${filter.fingerprint ?? null}::text)::bit(64)::bigint,
        ${filter.queue ?? null}::text,
        ${filter.until?.toISOString() ?? null}::timestamptz
      ) as dead, ceil(extract(epoch from now()) * 1000)::float8 as at`,
    decode: one((row) => ({ dead: Number(row.dead), at: timeOf(row.at) })),
  };
}

/** Adds up the counts of groups, and answers how many entries there were. */
export function foldDeaths({ limit }: { limit: number }): Statement<number> {
  return {
    name: "fold deaths",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.fold_deaths(${limit}::int) as count`,
    decode: one((row) => Number(row.count)),
  };
}
