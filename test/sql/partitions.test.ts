// The partitions of each day: they are added in time and dropped after the retention. prune removes the rest.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  addPartitions,
  cancel,
  discard,
  dropOldestDay,
  findJob,
  prune,
  replay,
} from "../../src/core/sql/index.ts";
import { addPastDay, makeOlder } from "../support/old-jobs.ts";
import { inSession } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, only, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const partitions = () =>
  queue.query<{ name: string }>(`
    select relname as name from pg_class
    where relnamespace = 'sluice'::regnamespace and relispartition and relkind = 'r' order by 1`);

/** Makes a job that was enqueued and completed so many days ago. */
async function completedOne(daysAgo: number, fields = {}): Promise<string> {
  const id = await queue.enqueueOne(fields);
  await queue.settle([await queue.claimOne()], { kind: "complete", output: "done" });
  return makeOlder(queue, id, daysAgo);
}
const exists = async (id: string) => (await db.run(findJob(id))) !== undefined;

describe("adding days", () => {
  test("twice adds nothing the second time", async () => {
    const before = await partitions();
    expect(await db.run(addPartitions())).toBe(0);
    expect(await partitions()).toEqual(before);
    expect(before).toHaveLength(2 * 9); // job and done: a default and eight days each
  });

  test("in two concurrent calls adds each day once", async () => {
    const added = await Promise.all(
      times(4, () => queue.query<{ n: number }>("select sluice.add_partitions(9) as n")),
    );
    expect(added.flat().reduce((sum, row) => sum + row.n, 0)).toBe(2);
    expect(await partitions()).toHaveLength(2 * 11);
  });

  test("leaves out a day that has rows in the default partition, and adds the others", async () => {
    const id = await makeOlder(queue, await queue.enqueueOne(), -12);
    expect(await queue.query("select sluice.add_partitions(13) as n")).toEqual([{ n: 3 }]);
    expect(await queue.find(id)).toMatchObject({ status: "pending" });
    expect(await queue.claim()).toMatchObject([{ id }]);
  });

  test("makes new jobs go into today's partition", async () => {
    await queue.enqueueOne();
    expect(await queue.count("job_default")).toBe(0);
  });
});

describe("dropping the oldest day", () => {
  afterEach(async () => {
    const old = await queue.query<{ name: string }>(`
      select relname as name from pg_class
      where relnamespace = 'sluice'::regnamespace and relispartition
        and relname ~ '^(job|done)_[0-9]{8}$' and right(relname, 8) < to_char(now() at time zone 'utc', 'YYYYMMDD')`);
    for (const { name } of old) await queue.query(`drop table sluice.${name}`);
  });

  test("removes its finished jobs and keeps the others", async () => {
    const day = await addPastDay(queue, 9);
    const old = await completedOne(9, { tags: ["x"] });
    const lately = await completedOne(9);
    await queue.query("update sluice.done set finished_at = now() where $1 = any(ids)", [lately]);
    const dead = await makeOlder(queue, await queue.buryOne(), 9);
    const processing = await queue.enqueueOne();
    const leasedJob = await queue.claimOne();
    const processingOld = await makeOlder(queue, processing, 9);
    const ready = await makeOlder(queue, await queue.enqueueOne({ payload: { n: 1 }, tags: ["y"] }), 9);
    const scheduled = await makeOlder(queue, await queue.enqueueOne({ delaySeconds: 60 }), 9);

    expect(await db.run(dropOldestDay())).toEqual(day);
    expect((await partitions()).some(({ name }) => name.endsWith(day.replaceAll("-", "")))).toBe(false);
    expect(await exists(old)).toBe(false);
    const statuses = [];
    for (const id of [lately, dead, processingOld, ready, scheduled])
      statuses.push((await queue.find(id)).status);
    expect(statuses).toEqual(["completed", "dead", "processing", "pending", "pending"]);

    expect(await queue.claim()).toMatchObject([{ id: ready, payload: { n: 1 }, tags: ["y"] }]);
    expect(await queue.isApplied(replay("ann", { id: dead }))).toBe(true);
    expect(await queue.claim()).toMatchObject([{ id: dead }]);
    const current = { id: processingOld, leaseKey: leasedJob.leaseKey };
    expect(await queue.settle([current], complete)).toMatchObject([{ applied: true }]);
    expect(await queue.isApplied(cancel(scheduled))).toBe(true);

    await db.run(prune({ limit: 100 }));
    expect([await queue.count("output"), await queue.count("job_tag")]).toEqual([1, 1]);
    expect(await db.run(dropOldestDay())).toBe(null);
  });

  test("drops one day at a time, the oldest first, and none with jobs younger than seven days", async () => {
    const days = [await addPastDay(queue, 7), await addPastDay(queue, 10), await addPastDay(queue, 8)];
    const young = await completedOne(7);
    const dropped = [];
    for (let n = 0; n < 3; n++) dropped.push(await db.run(dropOldestDay()));
    expect(dropped).toEqual([days[1], days[2], null]);
    expect(await exists(young)).toBe(true);
  });

  test("leaves a day with more unfinished jobs than it may copy, and drops the next", async () => {
    const [crowded, next] = [await addPastDay(queue, 10), await addPastDay(queue, 9)];
    for (let n = 0; n < 3; n++) await makeOlder(queue, await queue.enqueueOne(), 10);
    const dead = await makeOlder(queue, await queue.buryOne({ queue: "other" }), 9);
    const drop = async () =>
      only(await queue.query<{ day: string }>("select sluice.drop_oldest_day(p_limit => 2)::text as day"))
        .day;
    expect([await drop(), await drop()]).toEqual([next, null]);
    expect(await queue.find(dead)).toMatchObject({ status: "dead" });
    expect(await queue.claim()).toHaveLength(3);
    expect(await db.run(dropOldestDay())).toEqual(crowded);
    expect(await queue.query("select from sluice.jobs where status = 'processing'")).toHaveLength(3);
  });

  test("gives up while another transaction reads that day, and loses no job", {
    timeout: 20_000,
  }, async () => {
    const day = await addPastDay(queue, 9);
    const ready = await makeOlder(queue, await queue.enqueueOne(), 9);
    await inSession(db.pool, async (reader) => {
      await reader.query("begin");
      await reader.query(`select count(*) from sluice.job_${day.replaceAll("-", "")}`);
      expect(await db.run(dropOldestDay())).toBe(null);
      expect(await queue.find(ready)).toMatchObject({ status: "pending" });
    });
    expect(await db.run(dropOldestDay())).toEqual(day);
    expect(await queue.claim()).toMatchObject([{ id: ready }]);
  });
});

describe("prune", () => {
  test("removes cancelled and discarded jobs after 7 days and dead ones after 30, with their tags and errors", async () => {
    const closedOnes = async (days: number) => {
      const cancelled = await queue.enqueueOne({ tags: ["x"] });
      await db.run(cancel(cancelled));
      const discarded = await queue.buryOne({ tags: ["x"] });
      await db.run(discard("ann", { id: discarded }));
      const dead = await queue.buryOne({ tags: ["x"] });
      const ids = [];
      for (const id of [cancelled, discarded, dead]) ids.push(await makeOlder(queue, id, days));
      return ids;
    };
    const seen = [];
    for (const days of [6, 8, 31]) seen.push(await closedOnes(days));
    expect(await db.run(prune({ limit: 100 }))).toBe(5);
    const left = [];
    for (const ids of seen) left.push(await Promise.all(ids.map(exists)));
    expect(left).toEqual([
      [true, true, true],
      [false, false, true],
      [false, false, false],
    ]);
    const rows = [
      await queue.count("job"),
      await queue.count("job_tag"),
      await queue.count("failed_attempt"),
    ];
    expect(rows).toEqual([4, 4, 3]);
  });

  test("removes finished jobs from the default partition, with their outputs", async () => {
    const old = await completedOne(8);
    const young = await completedOne(6);
    expect(await db.run(prune({ limit: 100 }))).toBe(1);
    expect([await exists(old), await exists(young)]).toEqual([false, true]);
    expect([await queue.count("output"), await queue.count("done"), await queue.count("job")]).toEqual([
      1, 1, 1,
    ]);
  });

  test("keeps old jobs that are not finished", async () => {
    const ready = await makeOlder(queue, await queue.enqueueOne(), 25);
    const scheduled = await makeOlder(queue, await queue.enqueueOne({ delaySeconds: 60 }), 25);
    expect(await db.run(prune({ limit: 100 }))).toBe(0);
    expect([await exists(ready), await exists(scheduled)]).toEqual([true, true]);
  });

  test("removes at most the given number of rows of a kind, and never leaves a job without its state", async () => {
    for (let n = 0; n < 25; n++) {
      const id = await queue.enqueueOne();
      await db.run(cancel(id));
      await makeOlder(queue, id, 8);
    }
    const pruned = [];
    for (let step = 0; step < 4; step++) {
      pruned.push(await db.run(prune({ limit: 10 })));
      expect(await queue.query("select from sluice.jobs where status <> 'cancelled'")).toEqual([]);
    }
    expect(pruned).toEqual([10, 10, 5, 0]);
  });

  test("removes old rounds, and keeps the audit", async () => {
    const old = "now() - interval '8 days'";
    await queue.query(`insert into sluice.round (kind, started_at, ended_at, reason)
      values ('reap', ${old}, ${old}, 'done'), ('reap', now(), now(), 'done')`);
    await queue.query(
      `insert into sluice.audit (at, actor, action, target) values (now() - interval '1 year', 'me', 'pause', 'x')`,
    );
    const audited = await queue.count("audit");
    await db.run(prune({ limit: 100 }));
    expect([await queue.count("round"), await queue.count("audit")]).toEqual([1, audited]);
  });

  test("removes expired idempotency keys", async () => {
    await queue.enqueue(...times(5, (n) => ({ idempotencyKey: `k${n}` })));
    await queue.query(
      "update sluice.idempotency set expires_at = now() where key_hash < sluice.key_hash_of('k2')",
    );
    const kept = await queue.query("select from sluice.idempotency where expires_at > now()");
    await db.run(prune({ limit: 100 }));
    expect(await queue.count("idempotency")).toBe(kept.length);
    expect(await queue.count("job")).toBe(5);
  });
});
