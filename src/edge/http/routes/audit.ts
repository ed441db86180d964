// The audit: who did what, newest first.
import { Hono } from "hono";
import * as z from "zod";
import { type AuditPage, auditQuery } from "../../../contract/admin.ts";
import { listAudit } from "../../../core/sql/index.ts";
import type { AppEnv } from "../app-env.ts";
import { parseQuery } from "../codec/body.ts";
import { decodeCursor, encodeCursor } from "../codec/cursor.ts";

/** Within a bigint, whatever the digits are. */
const position = z.string().regex(/^\d{1,18}$/);

export const audit = new Hono<AppEnv>();

audit.get("/", async (context) => {
  const { cursor, limit } = parseQuery(context, auditQuery);
  const before = cursor === undefined ? undefined : decodeCursor(cursor, position);
  const found = await context.env.ports.db.run(listAudit({ before, limit }));
  const last = found.length === limit ? found.at(-1) : undefined;
  const body: AuditPage = {
    entries: found.map((entry) => ({ ...entry, at: entry.at.toISOString() })),
    next_cursor: last ? encodeCursor(last.id) : null,
  };
  return context.json(body);
});
