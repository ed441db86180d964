// GET /v1/stats: counters, the last hour minute by minute, the latest rounds, and the history for charts.
import type { HistoryResponse, StatsResponse } from "../../../contract/stats.ts";
import { isCanary } from "../../../core/alarms/alarm.ts";
import { type History, sumSeries } from "../../../core/history.ts";
import type { BlockedQueue, Group, Minute, RecentRound } from "../../../core/snapshot.ts";
import { readHistory, recentMinutes, snapshot } from "../../../core/sql/index.ts";
import { sumBooks } from "../codec/books-response.ts";
import type { Handlers } from "../operation-routes.ts";

/** The most pairs of queue and type whose minutes are shown. The minutes of all others are added up as "other". */
const maxPairs = 200;
/** The most queues whose history is shown. */
const maxQueues = 50;

export const getStats: Handlers["getStats"] = async (context, { query: { range } }) => {
  const { db } = context.env.ports;
  const [current, recent, history] = await Promise.all([
    db.run(snapshot()),
    db.run(recentMinutes({ pairs: maxPairs })),
    range && db.run(readHistory({ range, queues: maxQueues })),
  ]);
  const { recentRounds, expiredLeaseSeconds } = current;
  const groups = current.groups.filter((group) => !isCanary(group));
  const minutes = recent.filter((minute) => !isCanary(minute));
  const body: StatsResponse = {
    totals: sumBooks(groups),
    books: byQueueAndType(groups),
    minutes: minutes.map(toMinuteResponse),
    oldest_due_seconds: groups.reduce((oldest, group) => Math.max(oldest, group.oldestDueSeconds ?? 0), 0),
    expired_lease_seconds: expiredLeaseSeconds,
    blocked_partitions: current.blockedKeys.flatMap(toBlockedResponse),
    rounds: recentRounds.map(toRoundResponse),
    ...(history && { history: toHistoryResponse(history) }),
  };
  return context.json(body);
};

/** Leaves out a queue without blocked keys. */
function toBlockedResponse({ queue, keys, since, jobId }: BlockedQueue): StatsResponse["blocked_partitions"] {
  return since && jobId ? [{ queue, partitions: keys, since: since.toISOString(), job_id: jobId }] : [];
}

/** Adds up all priorities. */
function byQueueAndType(groups: readonly Group[]): StatsResponse["books"] {
  const pairs = Map.groupBy(groups, ({ queue, type }) => `${queue} ${type}`);
  return [...pairs.values()].flatMap((pairGroups) => {
    const [first] = pairGroups;
    return first ? [{ queue: first.queue, type: first.type, books: sumBooks(pairGroups) }] : [];
  });
}

function toMinuteResponse({ minute, ...counts }: Minute): StatsResponse["minutes"][number] {
  return { minute: minute.toISOString(), ...counts };
}

function toRoundResponse({ startedAt, endedAt, ...round }: RecentRound): StatsResponse["rounds"][number] {
  return { ...round, started_at: startedAt.toISOString(), ended_at: endedAt.toISOString() };
}

function toHistoryResponse(history: History): HistoryResponse {
  const { range, minutes, starts, recordedSince, queues, gaps, marks } = history;
  return {
    ...{ range, minutes, starts: starts.map(toText), recorded_since: toText(recordedSince) },
    total: sumSeries(history),
    queues: [...queues],
    gaps: gaps.map(({ from, to }) => ({ from: toText(from), to: toText(to) })),
    marks: marks.map((mark) => ({ ...mark, at: toText(mark.at) })),
  };
}

function toText(at: Date): string {
  return at.toISOString();
}
