// Writes the results to a directory: raw data as JSON, the table as Markdown, the pinned workload as charts.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Results } from "../run.ts";
import type { PinPoint } from "../workloads/workload.ts";
import { lineChart } from "./chart.ts";
import { summarize } from "./summary.ts";
import { markdown } from "./table.ts";

/** Returns the results that the directory now has. */
export function writeResults(directory: string, results: Results): Results {
  mkdirSync(directory, { recursive: true });
  const jsonFile = join(directory, "results.json");
  const all = existsSync(jsonFile) ? joined(JSON.parse(readFileSync(jsonFile, "utf8")), results) : results;
  const rows = summarize(all);
  writeFileSync(jsonFile, `${JSON.stringify({ ...all, rows }, null, 1)}\n`);
  writeFileSync(join(directory, "results.md"), markdown(all, rows));
  if (all.pinPoints.length > 0) {
    writeFileSync(join(directory, "pin-claims.svg"), claimChart(all.pinPoints));
    writeFileSync(join(directory, "pin-rate.svg"), rateChart(all.pinPoints));
  }
  return all;
}

/** Keeps earlier results of other workloads, if they had the same size and the same systems. */
function joined(before: Results, now: Results): Results {
  const isComparable =
    before.size === now.size && JSON.stringify(before.systems) === JSON.stringify(now.systems);
  if (!isComparable) return now;
  const ran = new Set([...now.samples, ...now.failures].map(({ workload }) => workload));
  const kept = <T extends { workload: string }>(entries: T[]) =>
    entries.filter(({ workload }) => !ran.has(workload));
  return {
    ...now,
    samples: [...kept(before.samples), ...now.samples],
    failures: [...kept(before.failures), ...now.failures],
    pinPoints: ran.has("pin") ? now.pinPoints : before.pinPoints,
  };
}

const xTitle = "jobs that went through since the snapshot was taken";

export function claimChart(points: readonly PinPoint[]): string {
  return lineChart({
    title: "A claim of 100 jobs while an old snapshot is held",
    yTitle: "median, ms (logarithmic)",
    xTitle,
    lines: linesOf(points, ({ claimP50Ms }) => claimP50Ms),
  });
}

function rateChart(points: readonly PinPoint[]): string {
  return lineChart({
    title: "Jobs in and out while an old snapshot is held",
    yTitle: "jobs/s (logarithmic)",
    xTitle,
    lines: linesOf(points, ({ jobsPerSecond }) => jobsPerSecond),
  });
}

function linesOf(points: readonly PinPoint[], yOf: (point: PinPoint) => number) {
  return [...Map.groupBy(points, ({ system }) => system)].map(([name, own]) => ({
    name,
    points: own.map((point) => ({ x: point.churned, y: yOf(point) })),
  }));
}
