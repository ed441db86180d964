// Sums of the books, and their segments in a bar.
import type { Segment } from "./bar.tsx";

const summed = ["pending", "scheduled", "leased", "blocked", "dead", "completed", "failed"] as const;
export type ShownCounts = Record<(typeof summed)[number], number>;

export function sumCounts(rows: readonly ShownCounts[]): ShownCounts {
  return Object.fromEntries(
    summed.map((name) => [name, rows.reduce((sum, row) => sum + row[name], 0)]),
  ) as ShownCounts;
}

/** What is waiting, running or dead: what has ended well needs no place. */
export function segmentsOf({ pending, scheduled, leased, blocked, dead }: ShownCounts): Segment[] {
  return [
    { shape: "later", word: "later", value: scheduled },
    { shape: "pending", word: "due", value: pending - scheduled },
    { shape: "blocked", word: "blocked", value: blocked },
    { shape: "processing", word: "processing", value: leased },
    { shape: "dead", word: "dead", value: dead },
  ];
}

/** How long the oldest due job has waited, in whole seconds. Null: none is due. */
export function oldestOf(groups: readonly { oldestDueSeconds: number | null }[]): number | null {
  const ages = groups.flatMap(({ oldestDueSeconds: age }) => (age === null ? [] : [age]));
  return ages.length === 0 ? null : Math.floor(Math.max(...ages));
}
