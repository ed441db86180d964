// How a row of read_history() and of overview() is read.
import { type History, type HistoryRange, historyRanges, type QueueSeries } from "./history.ts";

type Row = Record<string, unknown>;

export function decodeHistory(row: Row, range: HistoryRange): History {
  const { minutes, buckets } = historyRanges[range];
  return {
    range,
    minutes,
    starts: startsOf(Number(row.at), { minutes, buckets }),
    recordedSince: new Date(Number(row.since)),
    queues: (row.queues ?? []) as QueueSeries[],
    gaps: toRows(row.gaps).map(({ from, to }) => ({ from: toDate(from), to: toDate(to) })),
    marks: toRows(row.marks).map((mark) => ({ ...mark, at: toDate(mark.at) }) as History["marks"][number]),
  };
}

/** Buckets begin at whole multiples of their length since 2000, as date_bin has it. A day is a multiple of each length. */
function startsOf(atMs: number, { minutes, buckets }: { minutes: number; buckets: number }): Date[] {
  const lengthMs = minutes * 60_000;
  const newestMs = Math.floor(atMs / lengthMs) * lengthMs;
  return Array.from({ length: buckets }, (_, index) => new Date(newestMs - (buckets - 1 - index) * lengthMs));
}

/** Times in JSON are text. */
export function toDate(value: unknown): Date {
  return new Date(value as string);
}

export function toRows(value: unknown): Row[] {
  return (value ?? []) as Row[];
}
