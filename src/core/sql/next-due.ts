// next due, look. See migrations/functions/next-due.sql.
import { type LimitedType, packLimits } from "../type-limits.ts";
import { sql } from "./sql.ts";
import { one, type Row, type Statement } from "./statement.ts";

export interface NextDue {
  /** In how many milliseconds there is something for a drain to do. Null: nothing is planned. */
  dueMs: number | null;
  /** The same for the reaper and for notices. Null also if it was not asked for. */
  upkeepMs: number | null;
}

export interface Look extends NextDue {
  /** Only queues with due jobs. Each type and priority is counted up to the cap. */
  waiting: { queue: string; due: number }[];
  /** A run over dead letters can go on. */
  hasDueRuns: boolean;
}

/** `types` are those of the deployment. Of a type whose rate is used up, the next start is due. */
export function nextDue(types: readonly LimitedType[]): Statement<NextDue> {
  return {
    name: "next due",
    isRepeatable: true,
    build: (schema) => sql`
      select due_ms, upkeep_ms from ${schema}.next_due(p_limits => ${packLimits(types)}::jsonb)`,
    decode: one(toNextDue),
  };
}

/** What is due now, and when more is. Both are of one snapshot, so a job that becomes due is not missed between them. */
export function look(options: {
  types: readonly LimitedType[];
  cap: number;
  upkeep: boolean;
  /** How long until somebody looks again. */
  seconds: number;
}): Statement<Look> {
  const { types, cap, upkeep, seconds } = options;
  return {
    name: "look",
    isRepeatable: true,
    build: (schema) => sql`
      select (select json_agg(json_build_object('queue', queue, 'due', due))
              from ${schema}.backlog(${types.map(({ type }) => type)}::text[], ${cap}::int)) as waiting,
             ${schema}.has_due_runs(${seconds}::float8) as has_due_runs, due_ms, upkeep_ms
      from ${schema}.next_due(${upkeep}::boolean, ${packLimits(types)}::jsonb)`,
    decode: one((row) => ({
      waiting: (row.waiting ?? []) as Look["waiting"],
      hasDueRuns: row.has_due_runs === true,
      ...toNextDue(row),
    })),
  };
}

function toNextDue({ due_ms, upkeep_ms }: Row): NextDue {
  return { dueMs: numberOrNull(due_ms), upkeepMs: numberOrNull(upkeep_ms) };
}

function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}
