// settle: a whole batch of mixed outcomes, each fenced by the key of its lease. See migrations/functions/settle.sql.
import { sql } from "drizzle-orm";
import type { Settlement } from "../job.ts";
import { packSettlements, type Settled } from "../settlements.ts";
import { one, type Statement } from "./statement.ts";

export function settle(settlements: readonly Settlement[]): Statement<Settled[]> {
  const { ids, keys, outcomes, read } = packSettlements(settlements);
  return {
    name: "settle",
    isRepeatable: true, // the first run took the jobs out of their lease, so a second one changes nothing
    build: (schema) => sql`
      select ${schema}.settle(
        ${sql.param(ids)}::uuid[], ${sql.param(keys)}::uuid[], ${outcomes}::jsonb
      ) as statuses`,
    decode: one((row) => read(row.statuses as Settled["status"][])),
  };
}
