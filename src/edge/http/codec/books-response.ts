// The books as the admin API shows them, and what is paused.
import { booked } from "../../../core/sql/books.ts";
import type { Paused } from "../../../core/sql/pause.ts";

export type BooksResponse = Record<(typeof booked)[number], number>;

export function totalOf(rows: readonly BooksResponse[]): BooksResponse {
  return Object.fromEntries(
    booked.map((name) => [name, rows.reduce((sum, row) => sum + row[name], 0)]),
  ) as BooksResponse;
}

export function pauseOf(
  pauses: readonly Paused[],
  target: Pick<Paused, "kind" | "name">,
): { paused: boolean; paused_since: string | null } {
  const found = pauses.find(({ kind, name }) => kind === target.kind && name === target.name);
  return { paused: found !== undefined, paused_since: found?.since.toISOString() ?? null };
}
