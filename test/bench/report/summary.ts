// Turns samples into rows: the median and the spread of each system, and the ratio of Sluice to the best peer.
import type { Results } from "../run.ts";
import { median } from "../statistics.ts";
import { judge, type Verdict } from "./bars.ts";

export interface Cell {
  median: number;
  lowest: number;
  highest: number;
}

export interface SummaryRow {
  workload: string;
  what: string;
  unit: string;
  better: "more" | "less";
  cells: Record<string, Cell>;
  /** More than 1: Sluice is better than the best peer. */
  ratio: number | undefined;
  verdict: Verdict | undefined;
}

export function summarize(results: Results): SummaryRow[] {
  const rows = [...Map.groupBy(results.samples, ({ what }) => what).values()].flatMap((samples) => {
    const [first] = samples;
    if (!first) return [];
    const cells = Object.fromEntries(
      [...Map.groupBy(samples, ({ system }) => system)].map(([system, own]) => [
        system,
        cellOf(own.map(({ value }) => value)),
      ]),
    );
    const { workload, what, unit, better } = first;
    return [{ workload, what, unit, better, cells, ratio: ratioOf(cells, better), verdict: undefined }];
  });
  return rows.map((row) => ({ ...row, verdict: judge(row, rows, results.pinPoints) }));
}

/** More than 1: the first is better. */
export function ratio(a: number, b: number, better: "more" | "less"): number {
  return better === "more" ? a / b : b / a;
}

function ratioOf(cells: Record<string, Cell>, better: "more" | "less"): number | undefined {
  const { sluice, ...peers } = cells;
  const ratios = Object.values(peers).map((peer) => ratio(sluice?.median ?? Number.NaN, peer.median, better));
  return sluice && ratios.length > 0 ? Math.min(...ratios) : undefined;
}

function cellOf(values: readonly number[]): Cell {
  return { median: median(values), lowest: Math.min(...values), highest: Math.max(...values) };
}
