// Stamps that lie ahead of the clock, as it leaves them behind when it steps back by an hour.
import { beforeEach, expect, test } from "vitest";
import {
  advanceCursors,
  foldLedger,
  mendStamps,
  openBreaker,
  reapLeases,
  recordRound,
  snapshot,
} from "../../src/core/sql/index.ts";
import { differences } from "../support/balance.ts";
import { makeOlder } from "../support/old-jobs.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, only, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const mend = async () => await db.run(mendStamps());
const secondsAhead = async (table: string, column: string) =>
  only(
    await queue.query<{ s: number }>(
      `select extract(epoch from max(${column}) - clock_timestamp())::int as s from sluice.${table}`,
    ),
  ).s;

test("a queue whose clock did not step has nothing to mend", async () => {
  await queue.enqueue({}, {});
  await queue.settle([await queue.claimOne()], complete);
  await queue.claimOne({ leaseSeconds: 3600 });
  await db.run(recordRound({ kind: "drain", ms: 1, report: {} }));
  await db.run(openBreaker("echo"));
  await db.run(foldLedger({ limit: 100 }));
  expect(await mend()).toBe(0);
});

test("a lease lasts as long as it was given for, not an hour longer", async () => {
  await queue.enqueueOne();
  await queue.claimOne({ leaseSeconds: 60 });
  await queue.query(
    "update sluice.lease set started_at = started_at + interval '1 hour', deadline = deadline + interval '1 hour'",
  );
  expect(await mend()).toBe(1);
  expect(await secondsAhead("lease", "deadline")).toBeLessThanOrEqual(60);
  expect(await mend()).toBe(0);
  await queue.query("update sluice.lease set deadline = now() - interval '1 s'");
  expect(await db.run(reapLeases({ limit: 10 }))).toMatchObject({ returned: 1 });
});

test("a lease that was extended while the clock was ahead ends within an hour", async () => {
  await queue.enqueueOne();
  await queue.claimOne({ leaseSeconds: 60 });
  await queue.query("update sluice.lease set deadline = deadline + interval '5 hours'");
  expect(await mend()).toBe(1);
  expect(await secondsAhead("lease", "deadline")).toBeLessThanOrEqual(3600);
});

test("a type with a rate is held back for one window at most", async () => {
  const limited = { types: [{ type: "echo", limits: { rate: { limit: 2, perSeconds: 0.2 } } }] };
  await queue.enqueue({}, {}, {}, {});
  expect(await queue.claim(limited)).toHaveLength(2);
  await queue.query("update sluice.limit_state set started_at = array[now() + interval '1 hour']");
  expect(await queue.claim(limited)).toEqual([]); // counts as started now
  const giveUpAt = Date.now() + 10_000;
  let claimed = 0;
  while (claimed === 0 && Date.now() < giveUpAt) claimed = (await queue.claim(limited)).length;
  expect(claimed).toBe(2);
});

test("a breaker is probed again, a minute from now", async () => {
  await db.run(openBreaker("echo"));
  await queue.query(
    "update sluice.breaker set opened_at = opened_at + interval '1 hour', probed_at = probed_at + interval '1 hour'",
  );
  expect(await mend()).toBe(1);
  expect(await secondsAhead("breaker", "probed_at")).toBeLessThanOrEqual(0);
});

test("minutes and rounds that lie ahead are not recent for an hour, and the totals stay", async () => {
  await queue.enqueue({}, {});
  await queue.settle(await queue.claim(), complete);
  await db.run(foldLedger({ limit: 100 }));
  await queue.query("update sluice.tally set minute = minute + interval '1 hour' where minute > '-infinity'");
  await queue.query(
    "insert into sluice.tally select minute + interval '1 minute', lane, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0 from sluice.tally where minute > '-infinity'",
  );
  await db.run(recordRound({ kind: "drain", ms: 1, report: {} }));
  await queue.query("update sluice.round set ended_at = ended_at + interval '1 hour'");
  expect(await mend()).toBe(2);
  const minutes = await queue.query(`
    select enqueued::int, completed::int, minute <= now() as is_past from sluice.tally where minute > '-infinity'`);
  expect(minutes).toEqual([{ enqueued: 3, completed: 3, is_past: true }]);
  const { rounds, at } = await db.run(snapshot());
  expect(rounds[0]?.endedAt.getTime()).toBeLessThanOrEqual(at.getTime());
  expect(await differences(queue)).toEqual([]);
});

test("entries of the ledger that lie ahead are folded into the running minute", async () => {
  await queue.enqueueOne();
  await queue.query("update sluice.ledger set at = at + interval '1 hour'");
  await db.run(foldLedger({ limit: 100 }));
  expect(await secondsAhead("tally", "minute")).toBeLessThanOrEqual(0);
});

test("a job of an id that lies ahead has waited since the round before it came", async () => {
  await db.run(recordRound({ kind: "watch", ms: 1, report: {} }));
  await queue.query(
    "update sluice.round set started_at = now() - interval '10 min', ended_at = now() - interval '10 min'",
  );
  await makeOlder(queue, await queue.enqueueOne(), -1);
  await db.run(advanceCursors());
  const { groups } = await db.run(snapshot());
  expect(groups[0]?.oldestDueSeconds).toBeGreaterThan(500);
});
