// What charts show: counts of the recent past in buckets of equal length.

/** A range of a chart: so many buckets of so many minutes. The newest bucket is the one that has not ended. */
export const historyRanges = {
  "30m": { minutes: 1, buckets: 30 },
  "3h": { minutes: 5, buckets: 36 },
  "24h": { minutes: 30, buckets: 48 },
} as const satisfies Record<string, { minutes: 1 | 5 | 30; buckets: number }>;
export type HistoryRange = keyof typeof historyRanges;
export const historyRangeNames = Object.keys(historyRanges) as HistoryRange[];

export interface History {
  range: HistoryRange;
  /** The length of a bucket. */
  minutes: number;
  /** When each bucket begins, the oldest first. */
  starts: readonly Date[];
  /** Nothing is known of buckets that had ended by then. */
  recordedSince: Date;
  /** The queues with the most jobs by name, and all others as "other". */
  queues: readonly QueueSeries[];
  /** No watch round ended here: the database was left alone, or the crons stopped. The series are exact all the same. */
  gaps: readonly { from: Date; to: Date }[];
  /** Oldest first, at most 200. */
  marks: readonly { at: Date; kind: "pause" | "resume" | "firing" | "resolved"; about: string }[];
}

/** One value for each bucket. Null: nothing was recorded then. */
type Series = (number | null)[];

export interface Counted {
  enqueued: Series;
  completed: Series;
  /** Attempts that failed. */
  failed: Series;
  /** Failed attempts whose jobs run again. */
  retried: Series;
  /** Jobs that became dead. A replay does not take it back. */
  died: Series;
  /** The number of due jobs at the end of the bucket. */
  due: Series;
}

export interface QueueSeries extends Counted {
  queue: string;
}

/** The series of all queues together. */
export function sumSeries({ queues, starts }: Pick<History, "queues" | "starts">): Counted {
  const sum = (name: keyof Counted) =>
    starts.map((_, index) =>
      queues.reduce<number | null>((total, series) => {
        const value = series[name][index] ?? null;
        return value === null ? total : (total ?? 0) + value;
      }, null),
    );
  return {
    ...{ enqueued: sum("enqueued"), completed: sum("completed"), failed: sum("failed") },
    ...{ retried: sum("retried"), died: sum("died"), due: sum("due") },
  };
}
