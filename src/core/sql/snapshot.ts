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
      select
        coalesce(extract(epoch from now() - (
          select min(scheduled_at) from ${schema}.job where status = 'pending' and scheduled_at <= now()
        )), 0)::float8 as oldest_due_seconds,
        coalesce(extract(epoch from now() - (
          select min(lease_expires_at) from ${schema}.job where status = 'processing' and lease_expires_at <= now()
        )), 0)::float8 as expired_lease_seconds`,
    decode: (row) => ({
      oldestDueSeconds: Number(row.oldest_due_seconds),
      expiredLeaseSeconds: Number(row.expired_lease_seconds),
    }),
  };
}
