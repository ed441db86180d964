// snapshot: what the watch round looks at.
import { sql } from "drizzle-orm";
import type { Statement } from "./statement.ts";

export interface Snapshot {
  oldestDueSeconds: number;
  expiredLeaseSeconds: number;
}

export function snapshot(): Statement<Snapshot> {
  return {
    name: "snapshot",
    isRepeatable: true,
    build: (schema) => sql`
      select oldest_due_seconds, expired_lease_seconds from ${schema}.snapshot()`,
    decode: (row) => ({
      oldestDueSeconds: Number(row.oldest_due_seconds),
      expiredLeaseSeconds: Number(row.expired_lease_seconds),
    }),
  };
}
