// What the charts show: one number for each bucket of time, of all queues and of each.
import { isCanary } from "../core/alarms/alarm.ts";
import type { Minute, Snapshot } from "../core/snapshot.ts";

/** The beginning of each bucket and of the bucket after the last: one time more than there are values. */
export interface History {
  times: Date[];
  /** Jobs that were due at the end of the bucket, and jobs that are due now. */
  due: number[];
  dueNow: number;
  /** These three are a minute. */
  completed: number[];
  failed: number[];
  expired: number[];
}

const minuteMs = 60_000;

/** The last minutes that have ended, oldest first. */
export function historyOf(
  snapshot: Pick<Snapshot, "at" | "groups">,
  minutes: readonly Minute[],
  { length, queue }: { length: number; queue?: string },
): History {
  const isShown = (row: { queue: string; type: string }) =>
    !isCanary(row) && (queue === undefined || row.queue === queue);
  const endMs = Math.floor(snapshot.at.getTime() / minuteMs) * minuteMs;
  const times = Array.from(
    { length: length + 1 },
    (_, index) => new Date(endMs - (length - index) * minuteMs),
  );
  const shown = Map.groupBy(minutes.filter(isShown), ({ minute }) => minute.getTime());
  const sum = (at: Date, field: "completed" | "failed" | "expired" | "ready") =>
    (shown.get(at.getTime()) ?? []).reduce((total, row) => total + row[field], 0);
  const starts = times.slice(0, -1);
  const dueNow = snapshot.groups
    .filter(isShown)
    .reduce((total, { pending, scheduled }) => total + pending - scheduled, 0);
  return {
    times,
    dueNow,
    due: dueAtEnds(times, { dueNow, changeIn: (at) => sum(at, "ready") }),
    completed: starts.map((at) => sum(at, "completed")),
    failed: starts.map((at) => sum(at, "failed")),
    expired: starts.map((at) => sum(at, "expired")),
  };
}

/** Counts back from now: what is due now, less what has been added since. */
function dueAtEnds(
  times: readonly Date[],
  { dueNow, changeIn }: { dueNow: number; changeIn(at: Date): number },
): number[] {
  let due = dueNow;
  return times
    .slice(1)
    .toReversed()
    .map((end) => {
      due = Math.max(0, due - changeIn(end));
      return due;
    })
    .toReversed();
}
