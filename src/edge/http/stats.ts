// GET /v1/stats: the numbers behind the dashboard.
import { Hono } from "hono";
import type { StatsResponse } from "../../contract/admin.ts";
import type { Books } from "../../core/sql/books.ts";
import { books, lastRounds, snapshot } from "../../core/sql/index.ts";
import type { LastRound } from "../../core/sql/place.ts";
import type { AppEnv } from "./app.ts";
import { requireAdmin } from "./auth.ts";
import { totalOf } from "./place.ts";

const roundsOfEachKind = 5;

export const stats = new Hono<AppEnv>();
stats.use(requireAdmin);

stats.get("/", async (context) => {
  const { db } = context.env.queue;
  const [rows, [now], rounds] = await Promise.all([
    db.run(books()),
    db.run(snapshot()),
    db.run(lastRounds({ ofEach: roundsOfEachKind })),
  ]);
  const body: StatsResponse = {
    totals: totalOf(rows),
    books: byQueueAndType(rows),
    oldest_due_seconds: Math.max(0, ...(now?.groups ?? []).map((group) => group.oldestDueSeconds ?? 0)),
    expired_lease_seconds: now?.expiredLeaseSeconds ?? 0,
    rounds: rounds.map(roundOf),
  };
  return context.json(body);
});

/** Over all priorities. */
function byQueueAndType(rows: readonly Books[]): StatsResponse["books"] {
  const groups = new Map<string, Books[]>();
  for (const row of rows) {
    const key = `${row.queue} ${row.type}`;
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return [...groups]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([, group]) => {
      const [first] = group;
      return first ? [{ queue: first.queue, type: first.type, books: totalOf(group) }] : [];
    });
}

function roundOf({ startedAt, endedAt, ...round }: LastRound): StatsResponse["rounds"][number] {
  return { ...round, started_at: startedAt.toISOString(), ended_at: endedAt.toISOString() };
}
