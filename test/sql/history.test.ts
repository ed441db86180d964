// The history behind the charts: exact sums by bucket, the length of each queue at each time, and what is not known.
import { beforeEach, describe, expect, test } from "vitest";
import { type HistoryRange, sumSeries } from "../../src/core/history.ts";
import { discard, foldLedger, pause, prune, readHistory, replay, resume } from "../../src/core/sql/index.ts";
import { compile } from "../../src/core/sql/statement.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(async () => {
  await emptyQueue(db.pool);
  await recordedSince("2 days");
});

const read = (range: HistoryRange = "30m", queues = 10) => db.run(readHistory({ range, queues }));
const fold = () => db.run(foldLedger({ limit: 100_000 }));
const recordedSince = (ago: string) =>
  queue.query(
    "update sluice.migration set applied_at = now() - $1::interval where name = '0027_history.sql'",
    [ago],
  );
/** Moves what is in the ledger back in time. */
const age = (ago: string) => queue.query("update sluice.ledger set at = at - $1::interval", [ago]);
const retry = { kind: "retry", message: "busy", retryInSeconds: 0 } as const;
type Series = readonly (number | null)[] | undefined;
const newest = (series: Series) => series?.at(-1);
/** Of all buckets, because a new one may begin while a test runs. */
const total = (series: Series) => series?.reduce<number>((sum, value) => sum + (value ?? 0), 0);

describe("the series of a queue", () => {
  test.each([false, true])("count each kind of event once (folded: %s)", async (isFolded) => {
    const ids = (await queue.enqueue(...times(10, () => ({ maxAttempts: 2 })))).map(({ id }) => id);
    const first = await queue.claim({ limit: 6 });
    await queue.settle(first.slice(0, 3), complete);
    await queue.settle(first.slice(3, 5), retry);
    await queue.settle(first.slice(5), { kind: "bury", message: "no" });
    await db.run(replay("ann", { id: first[5]?.id ?? "" }));
    if (isFolded) await fold();
    const { queues } = await read();
    expect(ids).toHaveLength(10);
    expect(queues.map(({ queue }) => queue)).toEqual(["default"]);
    const [series] = queues;
    expect(total(series?.enqueued)).toBe(10);
    expect(total(series?.completed)).toBe(3);
    expect(total(series?.failed)).toBe(3);
    expect(total(series?.retried)).toBe(2);
    expect(total(series?.died)).toBe(1); // the replay does not take it back
    expect(newest(series?.due)).toBe(7);
  });

  test("a discarded job has died once, and an expired one too", async () => {
    const dead = await queue.buryOne();
    await db.run(discard("ann", { id: dead }));
    await queue.enqueueOne({ expiresAt: new Date(Date.now() - 1000) });
    await queue.claim();
    const [series] = (await read()).queues;
    expect(total(series?.died)).toBe(2);
    expect(total(series?.retried)).toBe(0);
  });

  test.each(["30m", "3h", "24h"] as const)(
    "are the same whether they are folded or not: %s",
    async (range) => {
      for (const ago of ["23 hours", "150 minutes", "20 minutes", "1 minute"]) {
        await queue.enqueue(...times(5, () => ({})));
        await queue.settle(await queue.claim({ limit: 3 }), complete);
        await queue.enqueue({ delaySeconds: 600 });
        await queue.query(
          "update sluice.ledger set at = now() - $1::interval where at > now() - interval '30 s'",
          [ago],
        );
      }
      const statement = readHistory({ range, queues: 10 });
      const { text, values } = compile(statement);
      const client = await db.pool.connect();
      await client.query("begin"); // so that all three have the same now()
      const unfolded = statement.decode((await client.query(text, values)).rows);
      await client.query("select sluice.fold_ledger(1000)");
      const folded = statement.decode((await client.query(text, values)).rows);
      await client.query("rollback");
      client.release();
      expect(folded).toEqual(unfolded);
      expect(total(unfolded.queues[0]?.enqueued)).toBeGreaterThan(0);
      expect(unfolded.queues[0]?.due).toHaveLength(unfolded.starts.length);
    },
  );

  test("have the length of the queue at the end of each bucket, also where nothing happened", async () => {
    await queue.enqueue(...times(5, () => ({})));
    await age("20 minutes");
    await fold();
    await queue.settle(await queue.claim({ limit: 2 }), complete);
    await age("10 minutes");
    await fold();
    await queue.enqueue({});
    const { queues, starts } = await read();
    const due = queues[0]?.due ?? [];
    const changes = due.map((length, index) => (length ?? 0) - (due[index - 1] ?? 0));
    expect(starts).toHaveLength(30);
    expect(due[0]).toBe(0);
    expect(changes.filter((change) => change !== 0)).toEqual([5, -2, 1]);
    expect(due.at(-1)).toBe(4);
    expect([9, 10, 11]).toContain(changes.indexOf(-2) - changes.indexOf(5)); // a minute may have begun meanwhile
  });

  test("a queue that is older than the range keeps its length through all of it", async () => {
    await queue.enqueue(...times(3, () => ({})));
    await age("26 hours");
    await fold();
    await db.run(prune({ limit: 1000 }));
    for (const range of ["30m", "3h", "24h"] as const)
      expect(new Set((await read(range)).queues[0]?.due)).toEqual(new Set([3]));
  });

  test("buckets begin at whole multiples of their length, and the newest is the current one", async () => {
    for (const [range, minutes] of [
      ["30m", 1],
      ["3h", 5],
      ["24h", 30],
    ] as const) {
      const { starts } = await read(range);
      expect(starts.every((start) => start.getTime() % (minutes * 60_000) === 0)).toBe(true);
      const [{ now } = { now: 0 }] = await queue.query<{ now: number }>(
        "select extract(epoch from now())::float8 * 1000 as now",
      );
      expect(now - (starts.at(-1)?.getTime() ?? 0)).toBeLessThanOrEqual(minutes * 60_000 + 2_000);
    }
  });

  test("leave out the canary", async () => {
    await queue.enqueueOne({ queue: "sluice", type: "sluice.canary" });
    expect((await read()).queues).toEqual([]);
  });

  test("the queues with the most jobs keep their names, and the sums of all stay the same", async () => {
    for (let n = 0; n < 5; n++) await queue.enqueue(...times(n + 1, () => ({ queue: `q${n}` })));
    await fold();
    const whole = await read();
    const few = await read("30m", 2);
    expect(few.queues.map((series) => series.queue)).toEqual(["other", "q3", "q4"]);
    expect(sumSeries(few)).toEqual(sumSeries(whole));
    expect(newest(sumSeries(whole).due)).toBe(15);
  });
});

describe("what is not known", () => {
  test("buckets that ended before anything was recorded have no values", async () => {
    await queue.enqueueOne();
    await recordedSince("5 minutes");
    const { queues, recordedSince: since, starts } = await read();
    const due = queues[0]?.due ?? [];
    for (const [index, start] of starts.entries())
      expect(due[index] === null).toBe(start.getTime() + 60_000 <= since.getTime());
    expect(due.filter((value) => value === null).length).toBeGreaterThanOrEqual(24);
    expect(sumSeries({ queues, starts }).due[0]).toBeNull();
  });

  test("times without a watch round are gaps", async () => {
    const round = (ago: string) =>
      queue.query(
        `insert into sluice.round (kind, started_at, ended_at, reason)
         values ('watch', now() - $1::interval, now() - $1::interval, 'done')`,
        [ago],
      );
    for (const ago of ["40 minutes", "25 minutes", "23 minutes", "12 minutes", "10 minutes"])
      await round(ago);
    const { gaps, starts } = await read();
    const minutesAgo = gaps.map(({ from, to }) =>
      [from, to].map((time) => Math.round((Date.now() - time.getTime()) / 60_000)),
    );
    expect(minutesAgo).toEqual([
      [expect.any(Number), 25],
      [23, 12],
      [10, 0],
    ]);
    expect(gaps[0]?.from).toEqual(starts[0]);
  });
});

test("pauses are marked, and other entries of the audit are not", async () => {
  await db.run(pause("ann", { queue: "default" }));
  await db.run(resume("ann", { queue: "default" }));
  const { marks } = await read();
  expect(marks.map(({ kind, about }) => [kind, about])).toEqual([
    ["pause", "queue default"],
    ["resume", "queue default"],
  ]);
});

test("prune keeps 50 buckets of each length", async () => {
  for (let hours = 0; hours < 30; hours++) {
    await queue.enqueueOne();
    await queue.query("update sluice.ledger set at = now() - $1 * interval '1 hour'", [hours]);
    await fold();
  }
  await db.run(prune({ limit: 1000 }));
  const rows = await queue.query(
    `select minutes, count(*)::int as buckets, max(now() - at) < minutes * interval '51 minutes' as is_recent
     from sluice.history group by minutes order by minutes`,
  );
  expect(rows).toEqual([
    { minutes: 1, buckets: 1, is_recent: true },
    { minutes: 5, buckets: 5, is_recent: true },
    { minutes: 30, buckets: 25, is_recent: true },
  ]);
});
