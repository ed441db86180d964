// type numbers: what each type did in the last hour, and what holds it back. See migrations/functions/type-numbers.sql.
import { type BucketCounts, type Percentiles, percentilesOf } from "../durations.ts";
import { type LimitedType, packLimits } from "../type-limits.ts";
import { sql } from "./sql.ts";
import { many, type Row, type Statement, time, timeOf, timeOrNull } from "./statement.ts";

export interface TypeNumbers {
  type: string;
  /** The counts begin here, 55 to 60 minutes ago. */
  since: Date;
  enqueued: number;
  completed: number;
  /** Attempts that failed. */
  failed: number;
  /** Failed attempts whose jobs run again. */
  retried: number;
  died: number;
  /** From when a job was due to its first claim. Null: none was claimed. */
  waiting: Percentiles | null;
  /** From the claim of the attempt that completed a job to its settlement. Null: none completed. */
  processing: Percentiles | null;
  /** What counts against the type's limits now. Null: it has none. */
  inUse: { running: number; started: number } | null;
  pausedSince: Date | null;
  /** Null: it never opened. It is open while closedAt is null, and closing while it has a step. */
  breaker: { openedAt: Date; closedAt: Date | null; step: number | null } | null;
}

/** `types` are those of the deployment, with their limits. Each is listed, and so is any other that ever had a job. */
export function typeNumbers(types: readonly LimitedType[]): Statement<TypeNumbers[]> {
  return {
    name: "type numbers",
    isRepeatable: true,
    build: (schema) => sql`
      select type, ${time("since")}, enqueued, completed, failed, retried, died, durations, bounds, running, started,
             ${time("paused_since")}, ${time("breaker_opened_at")}, ${time("breaker_closed_at")}, breaker_step
      from ${schema}.type_numbers(
        ${types.map(({ type }) => type)}::text[], ${packLimits(types)}::jsonb)`,
    decode: many(decodeNumbers),
  };
}

function decodeNumbers(row: Row): TypeNumbers {
  const durations = (row.durations ?? {}) as { waiting?: BucketCounts; processing?: BucketCounts };
  const bounds = (row.bounds ?? []) as number[];
  const openedAt = timeOrNull(row.breaker_opened_at);
  const closedAt = timeOrNull(row.breaker_closed_at);
  const step = row.breaker_step as number | null;
  const { running, started } = row;
  return {
    type: String(row.type),
    since: timeOf(row.since),
    enqueued: Number(row.enqueued),
    completed: Number(row.completed),
    failed: Number(row.failed),
    retried: Number(row.retried),
    died: Number(row.died),
    waiting: percentilesOf(durations.waiting, bounds),
    processing: percentilesOf(durations.processing, bounds),
    inUse: running === null ? null : { running: Number(running), started: Number(started) },
    pausedSince: timeOrNull(row.paused_since),
    breaker: openedAt && { openedAt, closedAt, step },
  };
}
