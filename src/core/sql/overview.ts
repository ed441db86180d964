// overview: what the first page needs beside the snapshot. See migrations/functions/overview.sql.
import type { AlarmKey, Severity } from "../alarms/alarm.ts";
import { type BucketCounts, type Percentiles, percentilesOf } from "../durations.ts";
import { type History, type HistoryRange, historyRanges } from "../history.ts";
import { decodeHistory, toDate, toRows } from "../history-row.ts";
import { sql } from "./sql.ts";
import { one, type Row, type Statement, time } from "./statement.ts";

export interface Overview {
  history: History;
  /** The alarms that fire, the longest first. */
  firing: readonly FiringAlarm[];
  pauses: readonly { kind: "queue" | "type"; name: string; since: Date }[];
  /** The next slots of five schedules, the nearest first. */
  nextSlots: readonly { name: string; cron: string; timeZone: string; slot: Date }[];
  /** How long jobs waited for their first claim in the last hour. Null: no job was claimed. */
  waiting: Percentiles | null;
  processing: Percentiles | null;
}

export interface FiringAlarm extends AlarmKey {
  severity: Severity;
  since: Date;
  summary: string;
  silencedUntil: Date | null;
}

export function overview({ range, queues }: { range: HistoryRange; queues: number }): Statement<Overview> {
  const { minutes, buckets } = historyRanges[range];
  return {
    name: "overview",
    isRepeatable: true,
    build: (schema) => sql`
      select ${time("at")}, ${time("since")}, queues, gaps, marks, firing, pauses, next_slots, durations, bounds
      from ${schema}.overview(${minutes}::int, ${buckets}::int, ${queues}::int)`,
    decode: one((row) => decodeOverview(row, range)),
  };
}

function decodeOverview(row: Row, range: HistoryRange): Overview {
  const durations = (row.durations ?? {}) as { waiting?: BucketCounts; processing?: BucketCounts };
  const bounds = (row.bounds ?? []) as number[];
  return {
    history: decodeHistory(row, range),
    firing: toRows(row.firing).map(decodeFiring),
    pauses: toRows(row.pauses).map(
      (pause) => ({ ...pause, since: toDate(pause.since) }) as Overview["pauses"][number],
    ),
    nextSlots: toRows(row.next_slots).map(({ time_zone: timeZone, slot, ...rest }) => ({
      ...(rest as { name: string; cron: string }),
      timeZone: String(timeZone),
      slot: toDate(slot),
    })),
    waiting: percentilesOf(durations.waiting, bounds),
    processing: percentilesOf(durations.processing, bounds),
  };
}

function decodeFiring({ job_type: jobType, since, silenced_until: until, ...rest }: Row): FiringAlarm {
  return {
    ...rest,
    jobType,
    since: toDate(since),
    silencedUntil: until === null ? null : toDate(until),
  } as FiringAlarm;
}
