// replay, replay many: dead jobs become pending again. See migrations/functions/replay.sql.
import type { DeadReason, Payload } from "../job.ts";
import { type ChangedJob, decodeChangedJob } from "../job-row.ts";
import { sql } from "./sql.ts";
import { many, one, type Statement } from "./statement.ts";

export function replay(
  actor: string,
  { id, payload = null }: { id: string; payload?: Payload | null },
): Statement<ChangedJob | null> {
  return {
    name: "replay",
    isRepeatable: false, // the second answer would be that the job is no longer dead
    build: (schema) => sql`
      select ${schema}.replay(
        ${actor}::text,
        ${id}::uuid,
        ${payload === null ? null : JSON.stringify(payload)}::jsonb
      ) as changed`,
    decode: one((row) => decodeChangedJob(row.changed)),
  };
}

export interface ManyDeadLetters {
  type: string;
  /** If left out, any reason. */
  reason?: DeadReason | undefined;
  /** The oldest are replayed first. */
  count: number;
}

/** Answers how many jobs of each queue are pending again. */
export function replayMany(
  actor: string,
  { type, reason, count }: ManyDeadLetters,
): Statement<{ queue: string; replayed: number }[]> {
  return {
    name: "replay many",
    isRepeatable: false,
    build: (schema) => sql`
      select queue, replayed
      from ${schema}.replay_many(
        ${actor}::text,
        ${type}::text,
        ${reason ?? null}::text,
        ${count}::int
      )`,
    decode: many((row) => ({ queue: String(row.queue), replayed: Number(row.replayed) })),
  };
}
