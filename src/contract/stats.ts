// The shapes of the statistics: counters, recent minutes, rounds, and the history that charts show.
import * as z from "zod";
import { historyRangeNames } from "../core/history.ts";
import { roundKinds } from "../core/snapshot.ts";
import { books } from "./admin.ts";
import { time } from "./jobs.ts";
import { jsonObject } from "./json.ts";
import { page } from "./pages.ts";

export const historyRange = z.enum(historyRangeNames);

/** With a range the answer also has the history. */
export const statsQuery = z.strictObject({ range: historyRange.optional() });

/** One value for each bucket. Null: nothing was recorded then. */
const series = z.array(z.int().nullable());
const counted = {
  enqueued: series,
  completed: series,
  /** Attempts that failed. */
  failed: series,
  /** Failed attempts whose jobs run again. */
  retried: series,
  /** Jobs that became dead. A replay does not take it back. */
  died: series,
  /** The number of due jobs at the end of the bucket. */
  due: series,
};

export const historyResponse = z.object({
  range: historyRange,
  /** The length of a bucket. */
  minutes: z.int(),
  /** When each bucket begins, the oldest first. The newest bucket has not ended. */
  starts: z.array(time),
  /** Nothing is known of buckets that had ended by then. */
  recorded_since: time,
  /** All queues together. */
  total: z.object(counted),
  /** The 50 queues with the most jobs by name, and all others as "other". */
  queues: z.array(z.object({ queue: z.string(), ...counted })),
  /** No watch round ended here: the database was left alone, or the crons stopped. The series are exact all the same. */
  gaps: z.array(z.object({ from: time, to: time })),
  /** Pauses and alarms, oldest first, at most 200. */
  marks: z.array(
    z.object({ at: time, kind: z.enum(["pause", "resume", "firing", "resolved"]), about: z.string() }),
  ),
});
export type HistoryResponse = z.output<typeof historyResponse>;

const round = {
  kind: z.string(),
  queue: z.string().nullable(),
  started_at: time,
  ended_at: time,
  claimed: z.int(),
  completed: z.int(),
  failed: z.int(),
  released: z.int(),
  lost: z.int(),
  /** Why it ended: empty, time, subrequests, error or done. */
  reason: z.string(),
  message: z.string().nullable(),
  /** Only for reap and watch rounds: what each step did, and how long it took. */
  steps: jsonObject.nullable(),
};

export const roundQuery = z.strictObject({ kind: z.enum(roundKinds).optional(), ...page });
export const roundPage = z.object({
  rounds: z.array(z.object({ id: z.string(), ...round })),
  next_cursor: z.string().nullable(),
});
export type RoundPage = z.output<typeof roundPage>;

export const statsResponse = z.object({
  totals: books,
  books: z.array(z.object({ queue: z.string(), type: z.string(), books })),
  /** The last hour by queue and type. Pairs after the 200 with the most jobs are added up as "other". Empty minutes are left out. */
  minutes: z.array(
    z.object({
      minute: time,
      queue: z.string(),
      type: z.string(),
      enqueued: z.int(),
      completed: z.int(),
      failed: z.int(),
      expired: z.int(),
      /** The change in the number of due jobs. */
      ready: z.int(),
    }),
  ),
  oldest_due_seconds: z.number(),
  expired_lease_seconds: z.number(),
  /** The queues with partition keys that stand still behind a dead job. */
  blocked_partitions: z.array(
    z.object({
      queue: z.string(),
      /** At most 10,000 are counted for each type and priority. */
      partitions: z.int(),
      /** Since when the longest one is blocked. */
      since: time,
      /** The dead job that blocks it. */
      job_id: z.uuid(),
    }),
  ),
  /** The last rounds of each kind, newest first. */
  rounds: z.array(z.object(round)),
  /** Only if the request names a range. */
  history: historyResponse.optional(),
});
export type StatsResponse = z.output<typeof statsResponse>;
