// snapshot: the state of all queues in one row. It matches the books and the tables.
import { beforeEach, describe, expect, test } from "vitest";
import type { NewJob } from "../../src/core/job.ts";
import type { Group, Snapshot } from "../../src/core/snapshot.ts";
import {
  books,
  durations,
  extend,
  foldLedger,
  openBreaker,
  prune,
  reapExpired,
  recentMinutes,
  recordEnqueueErrors,
  recordRound,
  registerPuller,
  replay,
  snapshot,
} from "../../src/core/sql/index.ts";
import { fillBooks, fillLedger } from "../support/busy-books.ts";
import { measure } from "../support/explain.ts";
import { makeOlder } from "../support/old-jobs.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, only, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const look = async (): Promise<Snapshot> => await db.run(snapshot());
const oldestDue = async (): Promise<number | null> => only((await look()).groups).oldestDueSeconds;
const recordWatch = () => db.run(recordRound({ kind: "watch", ms: 0, report: {} }));

test("the snapshot of an empty queue is empty", async () => {
  expect(await look()).toMatchObject({
    ...{ groups: [], minutes: [], rounds: [], recentRounds: [], runningSince: null, openBreakers: [] },
    ...{ liveWorkers: 0, expiredLeaseSeconds: 0, claimMs: null, enqueueErrors: [] },
    impossibleStates: { count: 0, example: null },
  });
});

describe("the groups", () => {
  const withoutAge = ({ oldestDueSeconds: _, ...group }: Group) => group;

  test("equal the books, with all, some or none of the entries folded", async () => {
    await queue.enqueue(
      ...times(12, (n) => ({ type: n % 2 ? "a" : "b", queue: n % 3 ? "default" : "heavy", priority: n % 4 })),
      { type: "a", expiresAt: new Date(Date.now() - 1000) },
    );
    const jobs = await queue.claim({ types: ["a", "b"], limit: 5 });
    await queue.settle(jobs.slice(0, 2), complete);
    await queue.settle(jobs.slice(2, 3), { kind: "bury", message: "" });
    await db.run(reapExpired({ limit: 10 }));
    for (const limit of [0, 3, 1000]) {
      await db.run(foldLedger({ limit }));
      const { groups } = await look();
      expect(groups.map(withoutAge)).toEqual(expect.arrayContaining(await db.run(books())));
      expect(groups).toHaveLength((await db.run(books())).length);
      for (const { enqueued, pending, blocked, leased, completed, dead, discarded, cancelled } of groups)
        expect(enqueued).toBe(pending + blocked + leased + completed + dead + discarded + cancelled);
      expect(groups.reduce((sum, group) => sum + group.expired, 0)).toBe(1);
    }
  });
});

describe("the oldest due job", () => {
  test("waits since its creation", async () => {
    await makeOlder(queue, await queue.enqueueOne(), 2);
    expect(await oldestDue()).toBeCloseTo(2 * 86_400, -2);
  });

  test("is null while all jobs are scheduled, processing or done", async () => {
    await queue.enqueue({}, { delaySeconds: 60 });
    await queue.claim();
    expect(await oldestDue()).toBeNull();
  });

  test("can be a scheduled job whose time has come", async () => {
    await queue.enqueueOne({ delaySeconds: 60 });
    await queue.query("update sluice.scheduled set run_at = now() - interval '10 minutes'");
    expect(await oldestDue()).toBeCloseTo(600, 0);
  });

  test("waits since its scheduled time once a claim has made it ready", async () => {
    await recordWatch();
    const later = await queue.enqueueOne({ delaySeconds: 60 });
    await queue.query("update sluice.scheduled set run_at = now() - interval '10 minutes'");
    await queue.query("update sluice.job set scheduled_at = now() - interval '10 minutes' where id = $1", [
      later,
    ]);
    await queue.query(
      "update sluice.round set ended_at = ended_at - interval '1 hour', started_at = started_at - interval '1 hour'",
    );
    await queue.settle(await queue.claim(), { kind: "release" });
    expect(await oldestDue()).toBeCloseTo(600, 0);
  });

  test.each(["retried", "replayed"])(
    "waits only since it became pending again when it was %s",
    async (how) => {
      const id = await queue.enqueueOne();
      const job = await queue.claimOne();
      if (how === "replayed") await queue.settle([job], { kind: "bury", message: "" });
      const old = await makeOlder(queue, id, 2);
      await recordWatch();
      if (how === "replayed") await db.run(replay("ann", { id: old }));
      else await queue.settle([{ ...job, id: old }], { kind: "retry", message: "", retryInSeconds: 0 });
      expect(await oldestDue()).toBeLessThan(10);
      await recordWatch();
      expect(await oldestDue()).toBeLessThan(10);
    },
  );

  test("is found in each queue, type and priority", async () => {
    for (const [priority, days] of [
      [9, 1],
      [1, 3],
    ] as const)
      await makeOlder(queue, await queue.enqueueOne({ priority }), days);
    const { groups } = await look();
    expect(
      groups.map(({ priority, oldestDueSeconds }) => [
        priority,
        Math.round((oldestDueSeconds ?? 0) / 86_400),
      ]),
    ).toEqual([
      [1, 3],
      [9, 1],
    ]);
  });
});

describe("the oldest due job with a key", () => {
  const enqueueOld = async (fields: Partial<NewJob>, days: number) =>
    await makeOlder(queue, await queue.enqueueOne(fields), days);
  const oldestDays = async () => Math.round(((await oldestDue()) ?? 0) / 86_400);
  const keyed = { partitionKey: "customer 7" };

  test("shows while nobody drains its queue", async () => {
    await enqueueOld(keyed, 2);
    expect(await oldestDays()).toBe(2);
  });

  test("shows in a queue that is drained again and again, if nobody asks for its type", async () => {
    await enqueueOld(keyed, 2);
    await queue.claim({ types: ["other"] });
    expect(await oldestDays()).toBe(2);
  });

  test("shows while it waits behind a running job of its key", async () => {
    await enqueueOld(keyed, 3);
    await enqueueOld(keyed, 2);
    await queue.enqueueOne(keyed);
    expect(await queue.claim()).toHaveLength(1);
    expect(await oldestDays()).toBe(2);
  });

  test("shows while the turn of its key waits for a dispatcher", async () => {
    await enqueueOld(keyed, 3);
    await enqueueOld(keyed, 2);
    await queue.settle(await queue.claim(), complete);
    expect(await oldestDays()).toBe(2);
  });

  test("shows for a fair key, capped or not", async () => {
    for (const days of [5, 4, 3]) await enqueueOld({ fairKey: "tenant 1" }, days);
    await queue.claimOne();
    expect(await oldestDays()).toBe(4);
    await queue.claim({ limit: 1, policy: { concurrency: 1 } });
    expect(await oldestDays()).toBe(4);
    await queue.claim({ limit: 1, policy: { concurrency: 2 } });
    expect(await oldestDays()).toBe(3);
  });

  test("does not show behind a retry, nor behind a dead job, which is a blocked key", async () => {
    await enqueueOld(keyed, 3);
    await enqueueOld(keyed, 2);
    await queue.settle(await queue.claim(), { kind: "retry", message: "", retryInSeconds: 60 });
    await queue.claim(); // it reads that the turn is out
    expect(await oldestDays()).toBe(0);
    await queue.query("update sluice.scheduled set run_at = now()");
    await queue.settle(await queue.claim(), { kind: "bury", message: "" });
    await queue.claim();
    expect(await oldestDays()).toBe(0);
    expect(await db.run(snapshot())).toMatchObject({ blockedKeys: [{ keys: 1 }] });
  });

  test("is of no other group: the lane of returned turns is none", async () => {
    await queue.enqueueOne(keyed);
    await queue.settle(await queue.claim(), complete);
    expect((await look()).groups.map(({ queue: name, type }) => [name, type])).toEqual([["default", "echo"]]);
  });
});

test("the recent minutes count what happened in the last hour, folded or not", async () => {
  const minute = (ago: number) => new Date((Math.floor(Date.now() / 60_000) - ago) * 60_000);
  const [longAgo, first, second] = [minute(62), minute(20), minute(15)];
  await queue.enqueue(...times(3, () => ({})), { type: "other" });
  await queue.query("update sluice.ledger set at = $1", [first]); // before a claim can fold it
  await queue.settle(await queue.claim(), complete);
  await queue.query("update sluice.ledger set at = $1 where leased <> 0", [second]);
  await queue.query("insert into sluice.ledger (at, lane, failed) select $1, lane, 7 from sluice.lane", [
    longAgo,
  ]);
  const minutesOf = (pairs = 10) => db.run(recentMinutes({ pairs }));
  const expected = [
    { minute: first, type: "echo", enqueued: 3, completed: 0, failed: 0, ready: 3 },
    { minute: first, type: "other", enqueued: 1, completed: 0, failed: 0, ready: 1 },
    { minute: second, type: "echo", enqueued: 0, completed: 3, failed: 0, ready: -3 },
  ].map((entry) => ({ ...entry, queue: "default", expired: 0 }));
  expect(await minutesOf()).toEqual(expected);
  await db.run(foldLedger({ limit: 100 }));
  expect(await minutesOf()).toEqual(expected);
  // When only one pair is shown, the one with fewer jobs is in "other".
  expect((await minutesOf(1)).map(({ queue, type, enqueued }) => [queue, type, enqueued])).toEqual([
    ["default", "echo", 3],
    ["other", "other", 1],
    ["default", "echo", 0],
  ]);
});

test("the minutes are summed between the starts of the windows that a watcher asks for", async () => {
  const minute = (ago: number) => new Date((Math.floor(Date.now() / 60_000) - ago) * 60_000);
  await queue.enqueueOne();
  await queue.query("delete from sluice.ledger");
  for (const ago of [0, 4, 5, 6, 15, 16, 29, 31])
    await queue.query("insert into sluice.ledger (at, lane, completed) select $1, lane, 1 from sluice.lane", [
      minute(ago),
    ]);
  const lookBy = async (windows: number[]) => await db.run(snapshot({ windows }));
  for (const limit of [0, 4, 100]) {
    await db.run(foldLedger({ limit }));
    const { at, minutes } = await lookBy([30, 5, 15]);
    const age = (from: Date) => Math.round((at.getTime() - from.getTime()) / 60_000 - 0.5);
    expect(minutes.map(({ minute: from, completed }) => [age(from), completed])).toEqual([
      [30, 2],
      [15, 2],
      [5, 3],
    ]);
  }
  expect((await lookBy([])).minutes).toEqual([]);
});

test("the rounds are the newest of each kind and the latest five", async () => {
  for (let n = 0; n < 7; n++)
    await db.run(recordRound({ kind: "drain", queue: "default", ms: 5, report: { claimed: n } }));
  await db.run(recordRound({ kind: "reap", ms: 5, report: { end: "error", message: "no" } }));
  await queue.query(
    "update sluice.round set ended_at = now() - interval '3 minutes', started_at = now() - interval '4 minutes' where claimed = 0 and kind = 'drain'",
  );
  const { at, rounds, recentRounds, runningSince } = await look();
  expect(rounds).toMatchObject([
    { kind: "reap", hasFailed: true },
    { kind: "drain", hasFailed: false },
  ]);
  expect(recentRounds.map(({ kind, claimed }) => [kind, claimed])).toEqual([
    ["reap", 0],
    ["drain", 6],
    ["drain", 5],
    ["drain", 4],
    ["drain", 3],
    ["drain", 2],
  ]);
  expect(at.getTime() - (runningSince?.getTime() ?? 0)).toBeCloseTo(180_000, -3);
});

test("the claim time is the median of the rounds of the last five minutes", async () => {
  for (const claimMs of [1000, 4, 8, 100, null])
    await db.run(recordRound({ kind: claimMs === 4 ? "nudge" : "drain", ms: 5, report: { claimMs } }));
  await queue.query(
    "update sluice.round set started_at = now() - interval '1 hour', ended_at = now() - interval '10 minutes' where claim_ms = 1000",
  );
  expect((await look()).claimMs).toBe(8);
});

test("a worker with live leases counts once, and a lease that ran out is overdue", async () => {
  await queue.enqueue(...times(5, () => ({})));
  for (const worker of ["a", "a", "b"]) await queue.claimOne({ worker });
  await queue.claimOne({ worker: "gone", leaseSeconds: -30 });
  const { liveWorkers, expiredLeaseSeconds } = await look();
  expect(liveWorkers).toBe(2);
  expect(expiredLeaseSeconds).toBeCloseTo(30, 0);
});

test("a registered worker counts, and once if it holds leases too", async () => {
  await queue.enqueue({}, {});
  for (const worker of ["a", "b"]) await queue.claimOne({ worker });
  for (const worker of ["b", "c"]) await db.run(registerPuller(worker, ["default"]));
  expect((await look()).liveWorkers).toBe(3);
});

test("it has the open breakers and the health of each table, with all partitions under the table's name", async () => {
  await db.run(openBreaker("mail"));
  const { openBreakers, tables, at } = await look();
  expect(openBreakers).toEqual([{ type: "mail", openedAt: expect.any(Date) }]);
  expect(at.getTime() - (openBreakers[0]?.openedAt.getTime() ?? 0)).toBeLessThan(5_000);
  const names = tables.map(({ table }) => table);
  expect(names).toEqual(expect.arrayContaining(["job", "done", "ready", "lease", "ledger"]));
  expect(names.filter((name) => /\d/.test(name))).toEqual([]);
  expect(new Set(names).size).toBe(names.length);
});

describe("the durations", () => {
  const readDurations = async () => {
    await db.run(foldLedger({ limit: 1000 }));
    const { buckets, bounds } = await db.run(durations({ pairs: 10 }));
    return buckets.map(({ measure, bucket, jobs, seconds }) => ({
      ...{ measure, jobs, atMost: bounds[bucket], seconds: Math.round(seconds) },
    }));
  };

  test("count how long jobs waited for their first claim and how long they were processed", async () => {
    await queue.enqueue(...times(3, () => ({})));
    const first = await queue.claim({ limit: 3 });
    await queue.query("update sluice.lease set started_at = now() - interval '7 s'");
    await queue.settle(first, complete);
    const old = await makeOlder(queue, await queue.enqueueOne(), 1);
    const [late] = await queue.claim();
    expect(late?.id).toBe(old);
    await queue.settle(late ? [late] : [], { kind: "retry", message: "", retryInSeconds: 0 });
    await queue.settle(await queue.claim(), complete);
    expect(await readDurations()).toMatchObject([
      { measure: "processing", jobs: 1, atMost: 0.05 },
      { measure: "processing", jobs: 3, atMost: 10, seconds: 21 },
      { measure: "waiting", jobs: 3, atMost: 0.05 },
      { measure: "waiting", jobs: 1 },
    ]);
  });

  test("begin when a delayed job is due, not when it was enqueued", async () => {
    const due = await makeOlder(queue, await queue.enqueueOne({ delaySeconds: 60 }), 2);
    await makeOlder(queue, await queue.enqueueOne(), 3);
    await queue.query("update sluice.scheduled set run_at = now() - interval '20 s'");
    await queue.query("update sluice.job set scheduled_at = now() - interval '20 s' where id = $1", [due]);
    const jobs = await queue.claim();
    expect(jobs).toHaveLength(2);
    await db.run(extend(jobs.slice(1), { seconds: 600 }));
    await queue.settle(jobs, complete);
    expect((await readDurations()).filter(({ measure }) => measure === "waiting")).toMatchObject([
      { jobs: 1, atMost: 30, seconds: 20 },
      { jobs: 1, atMost: undefined },
    ]);
  });
});

test("enqueue errors of the last hour are summed by minute, and old ones are pruned", async () => {
  await db.run(recordEnqueueErrors(2));
  await db.run(recordEnqueueErrors(3));
  await queue.query(
    "insert into sluice.enqueue_error (at, errors) values (now() - interval '2 hours', 9), (now() - interval '8 days', 9)",
  );
  expect((await look()).enqueueErrors).toMatchObject([{ errors: 5 }]);
  await db.run(prune({ limit: 10 }));
  expect(await queue.count("enqueue_error")).toBe(3);
});

test("after a day of minutes and a week of rounds, it reads only the totals, an hour, and the latest rounds", async () => {
  await queue.enqueue(...times(12, (n) => ({ type: `type-${n}` })));
  const client = await db.pool.connect();
  await fillBooks(client);
  await fillLedger(client, { rows: 1000 });
  await client.query("analyze");
  const { buffers } = await measure(client, "select * from sluice.snapshot()");
  client.release();
  expect(await queue.count("tally")).toBe(12 * 25 * 60);
  expect(buffers).toBeLessThan(3_000);
});
