// The history as charts draw it: numbers of the users' jobs, for all queues and for each.
import { canary } from "../core/alarms/alarm.ts";
import { type Counted, type History, type HistoryRange, sumSeries } from "../core/history.ts";

export const rangeNames: Record<HistoryRange, string> = { "30m": "30 min", "3h": "3 h", "24h": "24 h" };

export function seriesOf({ queues, starts }: History, queue?: string): Counted {
  const shown = queues.filter((series) =>
    queue === undefined ? series.queue !== canary.queue : series.queue === queue,
  );
  return sumSeries({ queues: shown, starts });
}

/** The beginning of each bucket, and the end of the last. */
export function timesOf({ starts, minutes }: History): Date[] {
  const end = (starts.at(-1)?.getTime() ?? 0) + minutes * 60_000;
  return [...starts, new Date(end)];
}

/** A minute, in each bucket. The last one has not ended, so its rate is not known. */
export function ratesOf(values: readonly (number | null)[], { minutes }: History): (number | null)[] {
  return values.map((value, index) =>
    value === null || index === values.length - 1 ? null : value / minutes,
  );
}

/** A minute, in the last bucket that has ended. */
export function latestRate(values: readonly (number | null)[], { minutes }: History): number {
  return (values.at(-2) ?? 0) / minutes;
}

const markNames = { pause: "paused", resume: "resumed", firing: "fires", resolved: "resolved" } as const;

/** "queue emails paused", "dead_letters fires". */
export function describeMark({ kind, about }: History["marks"][number]): string {
  return `${about} ${markNames[kind]}`;
}
