// list audit. See migrations/functions/audit.sql.
import { sql } from "drizzle-orm";
import type { Json } from "../job.ts";
import { many, type Statement, time, timeOf } from "./statement.ts";

export interface AuditEntry {
  /** A bigint as text. */
  id: string;
  at: Date;
  actor: string;
  action: string;
  target: string;
  before: Json;
  after: Json;
}

/** Newest first. `before` is the last id of the previous page. */
export function listAudit(page: { before?: string | undefined; limit: number }): Statement<AuditEntry[]> {
  return {
    name: "list audit",
    isRepeatable: true,
    build: (schema) => sql`
      select id, ${time("at")}, actor, action, target, before, after
      from ${schema}.list_audit(${page.before ?? null}::bigint, ${page.limit}::int)`,
    decode: many((row) => ({
      id: String(row.id),
      at: timeOf(row.at),
      actor: row.actor as string,
      action: row.action as string,
      target: row.target as string,
      before: row.before as Json,
      after: row.after as Json,
    })),
  };
}
