// GET /v1/stats: counters, the last hour minute by minute, and the latest rounds.
import type { StatsResponse } from "../../../contract/admin.ts";
import { isCanary } from "../../../core/alarms/alarm.ts";
import type { Group, Minute, RecentRound } from "../../../core/snapshot.ts";
import { recentMinutes, snapshot } from "../../../core/sql/index.ts";
import { totalOf } from "../codec/books-response.ts";
import type { Handlers } from "../operation-routes.ts";

/** Pairs of a queue and a type whose minutes are shown apart; those of all others are summed up as "other". */
const maxPairs = 200;

export const getStats: Handlers["getStats"] = async (context) => {
  const { db } = context.env.ports;
  const [seen, recent] = await Promise.all([db.run(snapshot()), db.run(recentMinutes({ pairs: maxPairs }))]);
  const { recentRounds, expiredLeaseSeconds } = seen;
  const groups = seen.groups.filter((group) => !isCanary(group));
  const minutes = recent.filter((minute) => !isCanary(minute));
  const body: StatsResponse = {
    totals: totalOf(groups),
    books: byQueueAndType(groups),
    minutes: minutes.map(minuteOf),
    oldest_due_seconds: groups.reduce((oldest, group) => Math.max(oldest, group.oldestDueSeconds ?? 0), 0),
    expired_lease_seconds: expiredLeaseSeconds,
    rounds: recentRounds.map(roundOf),
  };
  return context.json(body);
};

/** Over all priorities. */
function byQueueAndType(groups: readonly Group[]): StatsResponse["books"] {
  const pairs = Map.groupBy(groups, ({ queue, type }) => `${queue} ${type}`);
  return [...pairs.values()].flatMap((ofPair) => {
    const [first] = ofPair;
    return first ? [{ queue: first.queue, type: first.type, books: totalOf(ofPair) }] : [];
  });
}

function minuteOf({ minute, ...counts }: Minute): StatsResponse["minutes"][number] {
  return { minute: minute.toISOString(), ...counts };
}

function roundOf({ startedAt, endedAt, ...round }: RecentRound): StatsResponse["rounds"][number] {
  return { ...round, started_at: startedAt.toISOString(), ended_at: endedAt.toISOString() };
}
