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

export function settle(settlements: readonly Settlement[]): Statement<Settled[]> {
  const { ids, generations, outcomes, read } = packSettlements(settlements);
  return {
    name: "settle",
    isRepeatable: true, // the first run took the jobs out of their lease, so a second one changes nothing
    build: (schema) => sql`
      select ${schema}.settle(
        ${sql.param(ids)}::uuid[], ${sql.param(generations)}::bigint[], ${outcomes}::jsonb
      ) as statuses`,
    decode: (row) => read(row.statuses as Status[]),
  };
}

/** Null: the lease was lost. */
export type Status = JobStatus | null;

/** The arguments of the engine's settle(), sorted by id as a lease is, and how to read its answer. */
export function packSettlements(settlements: readonly Settlement[]) {
  const sorted = settlements
    .map((settlement, place) => ({ ...settlement, place }))
    .sort((a, b) => compare(a.job.id, b.job.id) || a.place - b.place);
  const isPlain = sorted.every(({ outcome }) => outcome.kind === "complete" && outcome.output === null);
  return {
    ids: sorted.map(({ job }) => job.id),
    generations: sorted.map(({ job }) => job.leaseGeneration),
    outcomes: isPlain ? null : JSON.stringify(sorted.map(({ outcome }) => fieldsOf(outcome))),
    read(statuses: readonly Status[]): Settled[] {
      const settled: Settled[] = [];
      for (const [index, { job, place }] of sorted.entries()) {
        const status = statuses[index] ?? null;
        settled[place] = { id: job.id, status, applied: status !== null };
      }
      return settled;
    },
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function fieldsOf(outcome: Outcome): object {
  switch (outcome.kind) {
    case "complete":
      return { outcome: outcome.kind, output: outcome.output };
    case "retry":
      return { outcome: outcome.kind, message: outcome.message, seconds: outcome.retryInSeconds };
    case "bury":
      return { outcome: outcome.kind, message: outcome.message };
    case "snooze":
      return { outcome: outcome.kind, seconds: outcome.retryInSeconds };
    case "release":
      return { outcome: outcome.kind };
    default:
      return outcome satisfies never;
  }
}
