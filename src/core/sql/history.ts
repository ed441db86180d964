// read history: what happened in the last half hour, three hours or day, for charts. See migrations/functions/history.sql.
import { type History, type HistoryRange, historyRanges } from "../history.ts";
import { decodeHistory } from "../history-row.ts";
import { sql } from "./sql.ts";
import { one, type Statement, time } from "./statement.ts";

export interface HistoryOptions {
  range: HistoryRange;
  /** The queues after so many with the most jobs are added up as "other". */
  queues: number;
}

export function readHistory({ range, queues }: HistoryOptions): Statement<History> {
  const { minutes, buckets } = historyRanges[range];
  return {
    name: "read history",
    isRepeatable: true,
    build: (schema) => sql`
      select ${time("at")}, ${time("since")}, queues, gaps, marks
      from ${schema}.read_history(${minutes}::int, ${buckets}::int, ${queues}::int)`,
    decode: one((row) => decodeHistory(row, range)),
  };
}
