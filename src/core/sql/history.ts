// read history: what happened in the last half hour, three hours or day, for charts. See migrations/functions/history.sql.
import { sql } from "drizzle-orm";
import { type History, type HistoryRange, historyRanges, type QueueSeries } from "../history.ts";
import { one, type Row, type Statement, time, timeOf } from "./statement.ts";

/** The queues after the `queues` with the most jobs are added up as "other". */
export function readHistory({ range, queues }: { range: HistoryRange; queues: number }): Statement<History> {
  const { minutes, buckets } = historyRanges[range];
  return {
    name: "read history",
    isRepeatable: true,
    build: (schema) => sql`
      select ${time("at")}, ${time("since")}, queues, gaps, marks
      from ${schema}.read_history(${minutes}::int, ${buckets}::int, ${queues}::int)`,
    decode: one((row) => ({
      range,
      minutes,
      starts: startsOf(timeOf(row.at), { minutes, buckets }),
      recordedSince: timeOf(row.since),
      queues: (row.queues ?? []) as QueueSeries[],
      gaps: toRows(row.gaps).map(({ from, to }) => ({ from: toDate(from), to: toDate(to) })),
      marks: toRows(row.marks).map((mark) => ({ ...mark, at: toDate(mark.at) }) as History["marks"][number]),
    })),
  };
}

/** Buckets begin at whole multiples of their length since 2000, as date_bin has it. A day is a multiple of each length. */
function startsOf(at: Date, { minutes, buckets }: { minutes: number; buckets: number }): Date[] {
  const lengthMs = minutes * 60_000;
  const newestMs = Math.floor(at.getTime() / lengthMs) * lengthMs;
  return Array.from({ length: buckets }, (_, index) => new Date(newestMs - (buckets - 1 - index) * lengthMs));
}

function toRows(value: unknown): Row[] {
  return (value ?? []) as Row[];
}

function toDate(value: unknown): Date {
  return new Date(value as string);
}
