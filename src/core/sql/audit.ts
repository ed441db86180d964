// list audit: reads the table that migrations/functions/audit.sql writes.
import { desc, getTableColumns, lt, sql } from "drizzle-orm";
import { decodeColumns, listColumns } from "./columns.ts";
import { audit } from "./schema.ts";
import { many, type Statement } from "./statement.ts";

export type AuditEntry = typeof audit.$inferSelect;

const columns = getTableColumns(audit);

/** Newest first. `before` is the last id of the previous page. */
export function listAudit(page: { before?: string | undefined; limit: number }): Statement<AuditEntry[]> {
  return {
    name: "list audit",
    isRepeatable: true,
    build: (schema) => sql`
      select ${listColumns(columns)}
      from ${schema}.audit
      ${page.before === undefined ? sql.empty() : sql`where ${lt(audit.id, page.before)}`}
      order by ${desc(audit.id)}
      limit ${page.limit}::int`,
    decode: many(decodeColumns(columns)),
  };
}
