// list pauses, list breakers: how the place is doing, beside its books.
import { sql } from "drizzle-orm";
import { many, type Statement, time, timeOf } from "./statement.ts";

export interface Paused {
  kind: "queue" | "type";
  name: string;
  since: Date;
}

export function listPauses(): Statement<Paused[]> {
  return {
    name: "list pauses",
    isRepeatable: true,
    build: (schema) => sql`select kind, name, ${time("since")} from ${schema}.pause`,
    decode: many((row) => ({
      kind: row.kind as Paused["kind"],
      name: row.name as string,
      since: timeOf(row.since),
    })),
  };
}

export interface OpenBreaker {
  type: string;
  openedAt: Date;
}

/** Only those that are open. */
export function listBreakers(): Statement<OpenBreaker[]> {
  return {
    name: "list breakers",
    isRepeatable: true,
    build: (schema) => sql`select type, ${time("opened_at")} from ${schema}.breaker where closed_at is null`,
    decode: many((row) => ({ type: row.type as string, openedAt: timeOf(row.opened_at) })),
  };
}
