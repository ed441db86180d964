// books: the totals of each queue, type and priority. See migrations/functions/books.sql.
import { sql } from "drizzle-orm";
import { many, type Statement } from "./statement.ts";

export const booked = [
  "enqueued",
  "pending",
  "scheduled",
  "leased",
  "completed",
  "failed",
  "dead",
  "discarded",
  "cancelled",
  "expired",
] as const;

export type Books = { queue: string; type: string; priority: number } & Record<
  (typeof booked)[number],
  number
>;

export function books(): Statement<Books[]> {
  return {
    name: "books",
    isRepeatable: true,
    build: (schema) => sql`
      select queue, type, priority, enqueued, pending, scheduled, leased, completed, failed, dead, discarded, cancelled, expired
      from ${schema}.books`,
    decode: many((row) => ({
      queue: row.queue as string,
      type: row.type as string,
      priority: Number(row.priority),
      ...(Object.fromEntries(booked.map((name) => [name, Number(row[name])])) as Record<
        (typeof booked)[number],
        number
      >),
    })),
  };
}

/** The number of waiting jobs of each queue, due or not. It comes from the books, so no jobs are counted. */
export function depths(): Statement<{ queue: string; pending: number }[]> {
  return {
    name: "depths",
    isRepeatable: true,
    build: (schema) => sql`select queue, sum(pending) as pending from ${schema}.books group by queue`,
    decode: many((row) => ({ queue: row.queue as string, pending: Number(row.pending) })),
  };
}
