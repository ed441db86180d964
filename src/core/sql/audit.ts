// list audit, search audit: they read the table that migrations/functions/audit.sql writes.
import type { RowOf } from "./column.ts";
import { decodeColumns, listColumns } from "./columns.ts";
import { audit } from "./schema.ts";
import { sql } from "./sql.ts";
import { many, type Statement } from "./statement.ts";

export type AuditEntry = RowOf<typeof audit>;

/** Newest first. `before` is the last id of the previous page. */
export function listAudit(page: { before?: string | undefined; limit: number }): Statement<AuditEntry[]> {
  return {
    name: "list audit",
    isRepeatable: true,
    build: (schema) => sql`
      select ${listColumns(audit)}
      from ${schema}.audit
      ${page.before === undefined ? sql.empty() : sql`where id < ${page.before}::bigint`}
      order by id desc
      limit ${page.limit}::int`,
    decode: many(decodeColumns(audit)),
  };
}

export interface AuditFilter {
  /** Parts of the texts, in any case. */
  actor?: string | undefined;
  action?: string | undefined;
  target?: string | undefined;
}

export interface AuditSearch {
  entries: AuditEntry[];
  /** The search went back to this entry, and there are older ones. Null: it came to the end. */
  searchedTo: string | null;
}

/** So many entries are looked at for one page: there is no index for a filter. */
const searchedEntries = 10_000;

/** Newest first. */
export function searchAudit({
  before,
  limit,
  actor,
  action,
  target,
}: AuditFilter & { before?: string | undefined; limit: number }): Statement<AuditSearch> {
  const decodeEntry = decodeColumns(audit);
  return {
    name: "search audit",
    isRepeatable: true,
    build: (schema) => sql`
      select searched_to, ${listColumns(audit)}
      from (
        with searched as materialized (
          select id, actor, action, target from ${schema}.audit
          ${before === undefined ? sql.empty() : sql`where id < ${before}::bigint`}
          order by id desc
          limit ${searchedEntries}::int
        )
        select searched_to, id
        from (select case when count(*) = ${searchedEntries}::int then min(id) end as searched_to from searched) as reach
        left join (
          select id from searched
          where strpos(lower(actor), lower(${actor ?? ""}::text)) > 0
            and strpos(lower(action), lower(${action ?? ""}::text)) > 0
            and strpos(lower(target), lower(${target ?? ""}::text)) > 0
          order by id desc
          limit ${limit}::int
        ) as found on true
      ) as page
      left join ${schema}.audit using (id)
      order by id desc`,
    decode: (rows) => ({
      // Without entries there is one row, with nothing but how far the search came.
      entries: rows.map(decodeEntry).filter(({ id }: { id: string | null }) => id !== null),
      searchedTo: (rows[0]?.searched_to ?? null) as string | null,
    }),
  };
}
