// settle: records the outcomes of a batch of jobs, each fenced by the key of its lease. See migrations/functions/settle.sql.
import type { Json, LeaseRef, Settlement } from "../job.ts";
import { packSettlements, type Settled } from "../settlements.ts";
import { sql } from "./sql.ts";
import { one, type Statement } from "./statement.ts";

export function settle(settlements: readonly Settlement[]): Statement<Settled[]> {
  const { ids, keys, outcomes, read } = packSettlements(settlements);
  return {
    name: "settle",
    isRepeatable: true, // the first run took the jobs out of their lease, so a second one changes nothing
    build: (schema) => sql`
      select ${schema}.settle(
        ${ids}::uuid[], ${keys}::uuid[], ${outcomes}::jsonb
      ) as statuses`,
    decode: one((row) => read(row.statuses as Settled["status"][])),
  };
}

/** For an app, in its own transaction. Answers false if the lease is lost. Then roll the transaction back. */
export function completeOne(job: LeaseRef, output: Json): Statement<boolean> {
  return {
    name: "complete",
    isRepeatable: false,
    // Every parameter is text and cast here, because drivers encode JSON in different ways.
    build: (schema) => sql`
      select ${schema}.complete(
        ${job.id}::text::uuid,
        ${job.leaseKey}::text::uuid,
        ${JSON.stringify(output)}::text::jsonb
      ) as applied`,
    decode: one((row) => row.applied === true),
  };
}
