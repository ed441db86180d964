// settle: a whole batch of mixed outcomes, each fenced by its generation. See migrations/functions/settle.sql.
import { sql } from "drizzle-orm";
import type { JobStatus, Outcome, Settlement } from "../job.ts";
import type { Statement } from "./statement.ts";

/** The job's new status; null, and not applied, when the lease was lost. */
export interface Settled {
  id: string;
  status: JobStatus | null;
  applied: boolean;
}

export function settle(settlements: readonly Settlement[]): Statement<Settled> {
  const rows = settlements.map(({ job, outcome }) => ({
    id: job.id,
    generation: job.leaseGeneration,
    outcome: outcome.kind,
    ...fieldsOf(outcome),
  }));
  return {
    name: "settle",
    isRepeatable: true, // the first run took the jobs out of their lease, so a second one changes nothing
    build: (schema) => sql`
      select id, status, applied from ${schema}.settle(${JSON.stringify(rows)}::jsonb)`,
    decode: (row) => ({
      id: row.id as string,
      status: row.status as JobStatus | null,
      applied: row.applied as boolean,
    }),
  };
}

function fieldsOf(outcome: Outcome): object {
  switch (outcome.kind) {
    case "complete":
      return outcome.output === null ? {} : { output: outcome.output };
    case "retry":
      return { message: outcome.message, seconds: outcome.retryInSeconds };
    case "bury":
      return { message: outcome.message };
    case "snooze":
      return { seconds: outcome.retryInSeconds };
    case "release":
      return {};
    default:
      return outcome satisfies never;
  }
}
