// record round, list rounds, backlog. See migrations/functions/rounds.sql.
import type { RoundKind } from "../snapshot.ts";
import { type LimitedType, packLimits } from "../type-limits.ts";
import type { RowOf } from "./column.ts";
import { decodeColumns, listColumns } from "./columns.ts";
import { round } from "./schema.ts";
import { type SQL, sql } from "./sql.ts";
import { many, one, type Statement } from "./statement.ts";

export interface RoundRecord {
  kind: RoundKind;
  queue?: string;
  ms: number;
  /** The result of the round. `claimMs` is the average time of a drain's claims. */
  report: object;
}

export function recordRound(record: RoundRecord): Statement<string> {
  return {
    name: "record round",
    isRepeatable: true, // a round recorded twice is still a round
    build: (schema) => sql`select ${callOf(schema, record)} as id`,
    decode: one((row) => String(row.id)),
  };
}

/** Also answers in how many milliseconds the next job is due, or null: migrations/functions/next-due.sql. */
export function recordRoundAndLook(
  record: RoundRecord,
  types: readonly LimitedType[],
): Statement<{ id: string; dueMs: number | null }> {
  return {
    name: "record round and look",
    isRepeatable: true,
    build: (schema) => sql`
      select ${callOf(schema, record)} as id, due_ms
      from ${schema}.next_due(p_limits => ${packLimits(types)}::jsonb)`,
    decode: one(({ id, due_ms }) => ({ id: String(id), dueMs: due_ms === null ? null : Number(due_ms) })),
  };
}

function callOf(schema: SQL, { kind, queue, ms, report }: RoundRecord): SQL {
  const { claimMs, ...counts }: { claimMs?: number | null } = report;
  return sql`${schema}.record_round(
    ${kind}::text,
    ${queue ?? null}::text,
    ${ms}::float8,
    ${JSON.stringify({ ...counts, claim_ms: claimMs })}::jsonb
  )`;
}

export type ListedRound = RowOf<typeof round>;

/** Newest first. `before` is the last id of the previous page. */
export function listRounds(page: {
  kind?: RoundKind | undefined;
  before?: string | undefined;
  limit: number;
}): Statement<ListedRound[]> {
  return {
    name: "list rounds",
    isRepeatable: true,
    build: (schema) => sql`
      select ${listColumns(round)}
      from ${schema}.list_rounds(${page.kind ?? null}::text, ${page.before ?? null}::bigint, ${page.limit}::int)`,
    decode: many(decodeColumns(round)),
  };
}

export interface Backlog {
  queue: string;
  due: number;
}

/** Only queues with due jobs. Each type and priority is counted up to the cap. */
export function backlog({ types, cap }: { types: readonly string[]; cap: number }): Statement<Backlog[]> {
  return {
    name: "backlog",
    isRepeatable: true,
    build: (schema) => sql`select queue, due from ${schema}.backlog(${types}::text[], ${cap}::int)`,
    decode: many((row) => ({ queue: String(row.queue), due: Number(row.due) })),
  };
}
