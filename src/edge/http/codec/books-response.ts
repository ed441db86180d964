// The books and the pauses as the admin API shows them.
import { booked } from "../../../core/booked.ts";
import type { Paused } from "../../../core/sql/pause.ts";

export type BooksResponse = Record<(typeof booked)[number], number>;

export function sumBooks(rows: readonly BooksResponse[]): BooksResponse {
  return Object.fromEntries(
    booked.map((name) => [name, rows.reduce((sum, row) => sum + row[name], 0)]),
  ) as BooksResponse;
}

export function findPause(
  pauses: readonly Paused[],
  target: Pick<Paused, "kind" | "name">,
): { paused: boolean; paused_since: string | null } {
  const pause = pauses.find(({ kind, name }) => kind === target.kind && name === target.name);
  return { paused: pause !== undefined, paused_since: pause?.since.toISOString() ?? null };
}
