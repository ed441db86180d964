// replay as, replay many as, count dead letters, discard as: what a caller of the API does to dead jobs, audited. See
// migrations/functions/dead-letters.sql.
import { sql } from "drizzle-orm";
import type { DeadReason, Payload } from "../job.ts";
import { many, one, type Statement } from "./statement.ts";

/** False: the job is not dead. */
export function replayAs(
  actor: string,
  { id, payload = null }: { id: string; payload?: Payload | null },
): Statement<boolean> {
  return {
    name: "replay as",
    isRepeatable: false, // the second answer would be that it is no longer dead
    build: (schema) => sql`
      select ${schema}.replay_as(
        ${actor}::text,
        ${id}::uuid,
        ${payload === null ? null : JSON.stringify(payload)}::jsonb
      ) as replayed`,
    decode: one((row) => row.replayed as boolean),
  };
}

export interface ManyDeadLetters {
  type: string;
  /** Left out: whatever they died of. */
  reason?: DeadReason | undefined;
  /** The oldest come first. */
  count: number;
  /** Left out: all at once. */
  perMinute?: number | undefined;
}

/** How many came back in each queue. */
export function replayManyAs(
  actor: string,
  { type, reason, count, perMinute }: ManyDeadLetters,
): Statement<{ queue: string; replayed: number }[]> {
  return {
    name: "replay many as",
    isRepeatable: false,
    build: (schema) => sql`
      select queue, replayed
      from ${schema}.replay_many_as(
        ${actor}::text,
        ${type}::text,
        ${reason ?? null}::text,
        ${count}::int,
        ${perMinute ? 60 / perMinute : 0}::float8
      )`,
    decode: many((row) => ({ queue: row.queue as string, replayed: Number(row.replayed) })),
  };
}

/** How many a replay would take. */
export function countDeadLetters({ type, reason, count }: ManyDeadLetters): Statement<number> {
  return {
    name: "count dead letters",
    isRepeatable: true,
    build: (schema) => sql`
      select count(*) as dead
      from ${schema}.dead_letters_of(${type}::text, ${reason ?? null}::text, ${count}::int)`,
    decode: one((row) => Number(row.dead)),
  };
}

/** False: the job is not dead. */
export function discardAs(
  actor: string,
  { id, reason = null }: { id: string; reason?: string | null },
): Statement<boolean> {
  return {
    name: "discard as",
    isRepeatable: false,
    build: (schema) =>
      sql`select ${schema}.discard_as(${actor}::text, ${id}::uuid, ${reason}::text) as discarded`,
    decode: one((row) => row.discarded as boolean),
  };
}
