// The audit log: who did what, newest first.
import * as z from "zod";
import type { AuditPage } from "../../../contract/admin.ts";
import * as sql from "../../../core/sql/index.ts";
import { decodeCursor, encodeCursor } from "../codec/cursor.ts";
import type { Handlers } from "../operation-routes.ts";

/** A number of up to 18 digits always fits a bigint. */
const position = z.string().regex(/^\d{1,18}$/);

export const listAudit: Handlers["listAudit"] = async (context, { query }) => {
  const { cursor, limit } = query;
  const before = cursor === undefined ? undefined : decodeCursor(cursor, position);
  const entries = await context.env.ports.db.run(sql.listAudit({ before, limit }));
  const last = entries.length === limit ? entries.at(-1) : undefined;
  const body: AuditPage = {
    entries: entries.map((entry) => ({ ...entry, at: entry.at.toISOString() })),
    next_cursor: last ? encodeCursor(last.id) : null,
  };
  return context.json(body);
};
