// mend_stamps: the clock steps back by an hour and leaves timestamps in the future. They are corrected.
import { beforeEach, expect, test } from "vitest";
import {
  advanceCursors,
  foldLedger,
  mendStamps,
  openBreaker,
  reapLeases,
  recordRound,
  snapshot,
  startDeadRun,
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

test("nothing is changed while no timestamp is in the future", async () => {
  await queue.enqueue({}, {});
  await queue.settle([await queue.claimOne()], complete);
  await queue.claimOne({ leaseSeconds: 3600 });
  await db.run(recordRound({ kind: "drain", ms: 1, report: {} }));
  await db.run(openBreaker("echo"));
  await db.run(foldLedger({ limit: 100 }));
  expect(await mend()).toBe(0);
});

test("a run over dead letters goes on", async () => {
  await db.run(startDeadRun("ann", { action: "replay", perMinute: 1 }));
  await queue.query("update sluice.dead_run set next_at = next_at + interval '1 hour'");
  expect(await mend()).toBe(1);
  expect(await secondsAhead("dead_run", "next_at")).toBeLessThanOrEqual(0);
  expect(await mend()).toBe(0);
});

test("a lease keeps its length, and does not last an hour longer", async () => {
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

test("a lease that was extended before the step ends within an hour", async () => {
  await queue.enqueueOne();
  await queue.claimOne({ leaseSeconds: 60 });
  await queue.query("update sluice.lease set deadline = deadline + interval '5 hours'");
  expect(await mend()).toBe(1);
  expect(await secondsAhead("lease", "deadline")).toBeLessThanOrEqual(3600);
});

test("a type with a rate waits for one period at most", async () => {
  const limited = { types: [{ type: "echo", limits: { rate: { limit: 2, perSeconds: 0.2 } } }] };
  await queue.enqueue({}, {}, {}, {});
  expect(await queue.claim(limited)).toHaveLength(2);
  await queue.query("update sluice.limit_state set started_at = array[now() + interval '1 hour']");
  expect(await queue.claim(limited)).toEqual([]); // counts as a start now
  const giveUpAt = Date.now() + 10_000;
  let claimed = 0;
  while (claimed === 0 && Date.now() < giveUpAt) claimed = (await queue.claim(limited)).length;
  expect(claimed).toBe(2);
});

test("an open breaker lets a probe through after a minute", async () => {
  await db.run(openBreaker("echo"));
  await queue.query(
    "update sluice.breaker set opened_at = opened_at + interval '1 hour', probed_at = probed_at + interval '1 hour'",
  );
  expect(await mend()).toBe(1);
  expect(await secondsAhead("breaker", "probed_at")).toBeLessThanOrEqual(0);
});

test("minutes and rounds in the future do not stay recent for an hour, and the totals do not change", async () => {
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

test("ledger entries in the future are folded into the current minute", async () => {
  await queue.enqueueOne();
  await queue.query("update sluice.ledger set at = at + interval '1 hour'");
  await db.run(foldLedger({ limit: 100 }));
  expect(await secondsAhead("tally", "minute")).toBeLessThanOrEqual(0);
});

test("a job whose id has a future time counts as waiting since the watch round before it", async () => {
  await db.run(recordRound({ kind: "watch", ms: 1, report: {} }));
  await queue.query(
    "update sluice.round set started_at = now() - interval '10 min', ended_at = now() - interval '10 min'",
  );
  await makeOlder(queue, await queue.enqueueOne(), -1);
  await db.run(advanceCursors());
  const { groups } = await db.run(snapshot());
  expect(groups[0]?.oldestDueSeconds).toBeGreaterThan(500);
});
