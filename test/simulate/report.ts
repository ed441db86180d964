// The results of a simulation as text: who owned how many buckets, what moved at each change, and what the checks found.
import { bucketCount } from "../../src/core/policy/hash-ring.ts";
import { isCompletion } from "./history.ts";
import type { RingChange } from "./ring-log.ts";
import type { Simulation } from "./simulate.ts";

const shownViolations = 10;

export function report(simulation: Simulation): string {
  const { violations } = simulation;
  return [
    "At each change of the live workers (in brackets: what 1/N would be):",
    table(changeRows(simulation)),
    "",
    "Workers:",
    table(workerRows(simulation)),
    "",
    totals(simulation),
    `violations: ${violations.length}`,
    ...violations.slice(0, shownViolations).map((violation) => `  ${violation}`),
  ].join("\n");
}

/** w2 before w10. */
export function sortNames(names: readonly string[]): string[] {
  return names.toSorted((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

/** "w9 joins", "w3 is gone". */
export function describeChange({ joined, gone }: Pick<RingChange, "joined" | "gone">): string {
  const verb = (names: readonly string[], one: string, many: string) =>
    names.length === 0 ? [] : [`${names.join(", ")} ${names.length === 1 ? one : many}`];
  return [...verb(joined, "joins", "join"), ...verb(gone, "is gone", "are gone")].join("; ");
}

function changeRows({ changes, options }: Simulation): string[][] {
  const rows = changes.map((change, index) => {
    const counts = countsOf(change.owners);
    const expected = (of: number) => (index === 0 ? "" : ` (${Math.round(of * change.expectedShare)})`);
    return [
      `${(change.atMs / 1000).toFixed(1)} s`,
      index === 0 ? "the workers join" : describeChange(change),
      String(change.workers.length),
      `${change.bucketsMoved}${expected(bucketCount)}`,
      `${change.keysMoved}${expected(options.keys)}`,
      sortNames(change.workers)
        .map((worker) => `${worker} ${counts.get(worker) ?? 0}`)
        .join(", "),
    ];
  });
  return [["at", "change", "workers", "buckets moved", "keys moved", "buckets of each worker"], ...rows];
}

function workerRows({ history, changes }: Simulation): string[][] {
  const counts = countsOf(changes.at(-1)?.owners ?? []);
  const byWorker = Map.groupBy(history.attempts, ({ worker }) => worker);
  const rows = sortNames([...byWorker.keys()]).map((worker) => {
    const attempts = byWorker.get(worker) ?? [];
    return [
      worker,
      String(attempts.filter(isCompletion).length),
      String(attempts.filter(({ outcome, isApplied }) => outcome === "retry" && isApplied).length),
      String(attempts.filter(({ isApplied }) => isApplied === false).length),
      String(attempts.filter(({ isApplied }) => isApplied === null).length),
      String(counts.get(worker) ?? "-"),
    ];
  });
  return [
    ["worker", "completed", "failed", "stale settles refused", "held at death", "buckets at the end"],
    ...rows,
  ];
}

function totals({ history, endedMs, options, doneByOwners }: Simulation): string {
  const completed = history.attempts.filter(isCompletion).length;
  const keys = history.enqueued.size;
  return (
    `${options.jobs} jobs of ${keys} keys, ${history.attempts.length} attempts, ${completed} completed ` +
    `(${((100 * doneByOwners) / Math.max(completed, 1)).toFixed(0)} % by the owner of their bucket), in ${(endedMs / 1000).toFixed(1)} s (seed ${options.seed})`
  );
}

function countsOf(owners: readonly string[]): Map<string, number> {
  return new Map([...Map.groupBy(owners, (owner) => owner)].map(([owner, { length }]) => [owner, length]));
}

function table(rows: readonly string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ")}`.trimEnd())
    .join("\n");
}
