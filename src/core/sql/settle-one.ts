// settle one: settles one claimed job, and answers with the job. See migrations/functions/settle-one.sql.
import type { Settlement } from "../job.ts";
import { type ChangedJob, decodeChangedJob } from "../job-row.ts";
import { packSettlements } from "../settlements.ts";
import { sql } from "./sql.ts";
import { one, type Statement } from "./statement.ts";

export function settleOne(settlement: Settlement): Statement<ChangedJob | null> {
  const { id, leaseKey } = settlement.job;
  const { outcomes } = packSettlements([settlement]);
  return {
    name: "settle one",
    isRepeatable: true, // the first run took the job out of its lease, so a second one changes nothing
    build: (schema) => sql`
      select ${schema}.settle_one(${id}::uuid, ${leaseKey}::uuid, ${outcomes}::jsonb) as changed`,
    decode: one((row) => decodeChangedJob(row.changed)),
  };
}
