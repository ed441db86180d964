// list pauses, list breakers, last rounds: how the place is doing, beside its books.
import { sql } from "drizzle-orm";
import type { Statement } from "./statement.ts";

export interface Paused {
  kind: "queue" | "type";
  name: string;
  since: Date;
}

export function listPauses(): Statement<Paused> {
  return {
    name: "list pauses",
    isRepeatable: true,
    build: (schema) => sql`select kind, name, since from ${schema}.pause`,
    decode: (row) => ({
      kind: row.kind as Paused["kind"],
      name: row.name as string,
      since: row.since as Date,
    }),
  };
}

export interface OpenBreaker {
  type: string;
  openedAt: Date;
}

/** Only those that are open. */
export function listBreakers(): Statement<OpenBreaker> {
  return {
    name: "list breakers",
    isRepeatable: true,
    build: (schema) => sql`select type, opened_at from ${schema}.breaker where closed_at is null`,
    decode: (row) => ({ type: row.type as string, openedAt: row.opened_at as Date }),
  };
}

export interface LastRound {
  kind: string;
  queue: string | null;
  startedAt: Date;
  endedAt: Date;
  claimed: number;
  completed: number;
  failed: number;
  released: number;
  lost: number;
  reason: string;
  message: string | null;
}

/** The latest of each kind, newest first. */
export function lastRounds({ ofEach }: { ofEach: number }): Statement<LastRound> {
  return {
    name: "last rounds",
    isRepeatable: true,
    build: (schema) => sql`
      select latest.kind, queue, started_at, ended_at, claimed, completed, failed, released, lost, reason, message
      from unnest(array['drain', 'nudge', 'reap', 'watch']) as kinds(kind)
      cross join lateral (
        select * from ${schema}.round where round.kind = kinds.kind order by id desc limit ${ofEach}::int
      ) as latest
      order by id desc`,
    decode: (row) => ({
      kind: row.kind as string,
      queue: row.queue as string | null,
      startedAt: row.started_at as Date,
      endedAt: row.ended_at as Date,
      claimed: Number(row.claimed),
      completed: Number(row.completed),
      failed: Number(row.failed),
      released: Number(row.released),
      lost: Number(row.lost),
      reason: row.reason as string,
      message: row.message as string | null,
    }),
  };
}
