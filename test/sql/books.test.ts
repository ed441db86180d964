// The books: enqueued = completed + dead + discarded + cancelled + pending + leased, for each type, at any moment.
import { beforeEach, expect, test } from "vitest";
import type { Outcome } from "../../src/core/job.ts";
import {
  books,
  cancel,
  discard,
  extend,
  foldLedger,
  prune,
  reapExpired,
  reapLeases,
  replay,
} from "../../src/core/sql/index.ts";
import { differences } from "../support/balance.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, times, type Verbs, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const types = ["a", "b"];
const outcomes: Outcome[] = [
  complete,
  { kind: "retry", message: "", retryInSeconds: 0 },
  { kind: "retry", message: "", retryInSeconds: 60 },
  { kind: "bury", message: "" },
  { kind: "snooze", retryInSeconds: 60 },
  { kind: "release" },
];

/** Runs every verb once with jobs of two types, and calls `look` after each. */
async function runEveryVerb(look: (verb: string) => Promise<void>) {
  const some = (count: number, fields = {}) =>
    queue.enqueue(...times(count, (n) => ({ type: types[n % 2] ?? "a", ...fields })));
  const then = async <T>(verb: string, work: Promise<T>) => {
    const result = await work;
    await look(verb);
    return result;
  };
  await then("enqueue", some(24, { maxAttempts: 2 }));
  await then("enqueue, delayed and keyed", some(2, { delaySeconds: 60, idempotencyKey: "k", type: "a" }));
  for (const outcome of outcomes) {
    const jobs = await then("claim", queue.claim({ types, limit: 4 }));
    await then("extend", db.run(extend(jobs.slice(1, 3), { seconds: 600 })));
    await then(`settle: ${outcome.kind}`, queue.settle(jobs, outcome));
    await then("settle again", queue.settle(jobs, outcome));
  }
  await then("claim", queue.claim({ types, limit: 4, leaseSeconds: -1 }));
  await then("reap leases", db.run(reapLeases({ limit: 10 })));
  const dead = await queue.query<{ id: string }>(
    "select id from sluice.closed where status = 'dead' order by id",
  );
  for (const { id } of dead.slice(0, 2)) await then("replay", db.run(replay("ann", { id })));
  for (const { id } of dead.slice(2, 3)) await then("discard", db.run(discard("ann", { id })));
  const pending = await queue.query<{ id: string }>("select id from sluice.ready limit 2");
  for (const job of pending) await then("cancel", db.run(cancel(job.id)));
  await some(4, { expiresAt: new Date(Date.now() - 1000) });
  await then("claim of expired jobs", queue.claim({ types }));
  await some(4, { expiresAt: new Date(Date.now() - 1000) });
  await then("reap expired", db.run(reapExpired({ limit: 10 })));
}

test("the books balance for each type after every verb, and match the tables", async () => {
  await runEveryVerb(async (verb) => expect([verb, await differences(queue)]).toEqual([verb, []]));
  const totals = await db.run(books());
  expect(totals.map((row) => row.type).toSorted()).toEqual(types);
  for (const row of totals) {
    for (const entry of ["completed", "pending", "dead", "failed"] as const)
      expect(row[entry]).toBeGreaterThan(0);
    expect(row.expired).toBe(4); // two by the claim, two by the reaper
  }
});

test("folding entries, and dropping minutes older than a day, changes no total", async () => {
  await runEveryVerb(async () => {});
  const totals = (await db.run(books())).toSorted((a, b) => a.type.localeCompare(b.type));
  const unchanged = async () =>
    expect((await db.run(books())).toSorted((a, b) => a.type.localeCompare(b.type))).toEqual(totals);

  await queue.query("update sluice.ledger set at = at - interval '3 days' where ctid < '(0,20)'");
  const entries = await queue.count("ledger");
  expect(await db.run(foldLedger({ limit: 5 }))).toBe(5);
  await unchanged();
  expect(await db.run(foldLedger({ limit: 100_000 }))).toEqual(entries - 5);
  await unchanged();
  expect(await queue.count("ledger")).toBe(0);

  const minutes = async () =>
    (await queue.query("select from sluice.tally where minute > '-infinity'")).length;
  const before = await minutes();
  await db.run(prune({ limit: 1 }));
  expect(await minutes()).toBe(before - 1);
  await db.run(prune({ limit: 1000 }));
  expect(await minutes()).toBeGreaterThan(0);
  expect(
    await queue.query(
      "select from sluice.tally where minute > '-infinity' and minute < now() - interval '2 days'",
    ),
  ).toEqual([]);
  await unchanged();
  expect(await differences(queue)).toEqual([]);
});

test("concurrent folds count every entry once", async () => {
  await Promise.all(times(200, () => queue.enqueueOne()));
  const folded = await Promise.all(times(8, () => db.run(foldLedger({ limit: 50 }))));
  expect(folded.reduce((sum, count) => sum + count, 0)).toBe(200 - (await queue.count("ledger")));
  expect(await db.run(books())).toMatchObject([{ enqueued: 200, pending: 200 }]);
});

test("the books balance in every snapshot while four writers run", async () => {
  let isRunning = true;
  let rounds = 0;
  const write = async (writer: number) => {
    for (let round = writer; isRunning; round++, rounds++) await writeRound(queue, round);
  };
  const read = async () => {
    for (let snapshots = 0; isRunning && (snapshots < 30 || rounds < 120); snapshots++)
      expect(await differences(queue)).toEqual([]);
    isRunning = false;
  };
  await Promise.all([read(), ...times(4, write)]).finally(() => {
    isRunning = false;
  });
  expect(await differences(queue)).toEqual([]);
  expect(await queue.count("done")).toBeGreaterThan(10);
});

async function writeRound(verbs: Verbs, round: number): Promise<void> {
  const [first] = await verbs.enqueue(
    ...times(8, (n) => ({ type: types[n % 2] ?? "a", delaySeconds: n % 3 === 0 ? 60 : 0 })),
  );
  if (round % 3 === 0) await db.run(cancel(first?.id ?? ""));
  const jobs = await verbs.claim({ types, limit: 5, leaseSeconds: round % 5 === 0 ? -1 : 300 });
  if (round % 5 === 0) await db.run(reapLeases({ limit: 2 }));
  else await verbs.settle(jobs, outcomes[round % outcomes.length] ?? complete);
  if (round % 7 === 0) await db.run(foldLedger({ limit: 1000 }));
}
