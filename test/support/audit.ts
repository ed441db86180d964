// Reads the newest entries of the audit. It cannot be emptied between tests, so tests compare only these.
import type { AuditEntry } from "../../src/core/sql/audit.ts";
import { listAudit } from "../../src/core/sql/index.ts";
import type { Database } from "../../src/queue/ports.ts";
import { only } from "./verbs.ts";

export async function newestAudit(db: Database): Promise<AuditEntry> {
  return only(await db.run(listAudit({ limit: 1 })));
}
