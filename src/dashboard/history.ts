// The history as charts draw it: numbers of the users' jobs, for all queues and for each.
import { canary } from "../core/alarms/alarm.ts";
import { type Counted, type History, type HistoryRange, sumSeries } from "../core/history.ts";

export const rangeNames: Record<HistoryRange, string> = { "30m": "30 min", "3h": "3 h", "24h": "24 h" };

export type DrawnSeries = { [Name in keyof Counted]: number[] };

export function seriesOf({ queues, starts }: History, queue?: string): DrawnSeries {
  const shown = queues.filter((series) =>
    queue === undefined ? series.queue !== canary.queue : series.queue === queue,
  );
  const summed = Object.entries(sumSeries({ queues: shown, starts }));
  // Before the first record there is nothing to draw.
  return Object.fromEntries(
    summed.map(([name, values]) => [name, values.map((value: number | null) => value ?? 0)]),
  ) as DrawnSeries;
}

/** The beginning of each bucket, and the end of the last. */
export function timesOf({ starts, minutes }: History): Date[] {
  const end = (starts.at(-1)?.getTime() ?? 0) + minutes * 60_000;
  return [...starts, new Date(end)];
}

/** A minute, in the last bucket that has ended. */
export function latestRate(values: readonly number[], { minutes }: History): number {
  return (values.at(-2) ?? 0) / minutes;
}
