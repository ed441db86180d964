// replay: dead jobs become pending again, one job or many in a call, and each replay is audited.
import { beforeEach, describe, expect, test } from "vitest";
import { books, countDead, discard, reapExpired, replay, replayMany } from "../../src/core/sql/index.ts";
import { newestAudit } from "../support/audit.ts";
import { oneOfEach } from "../support/one-of-each.ts";
import { inSession, sqlState } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, daySeconds, only, secondsFromNow, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const isReplayed = (id: string) => queue.isApplied(replay("ann", { id }));

async function bury(count: number, fields: Parameters<typeof queue.buryOne>[0] = {}): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) ids.push(await queue.buryOne(fields));
  return ids;
}

/** Makes a job that is dead because it used up its one attempt. */
async function exhaust(): Promise<string> {
  const id = await queue.enqueueOne({ maxAttempts: 1 });
  await queue.settle([await queue.claimOne()], { kind: "retry", message: "busy" });
  return id;
}

/** Makes a job that is dead because it expired. */
async function expire(): Promise<string> {
  const id = await queue.enqueueOne({ expiresAt: new Date(Date.now() - 1000) });
  expect(await db.run(reapExpired({ limit: 10 }))).toBe(1);
  return id;
}

/** A time zone whose clock skips an hour ten days from now, at any time of the year. */
function zoneWithLostHour(): string {
  const dayOfYear = (inDays: number) => {
    const date = new Date(Date.now() + inDays * daySeconds * 1000);
    const yearStart = Date.UTC(date.getUTCFullYear(), 0, 0);
    return Math.min(365, Math.floor((date.getTime() - yearStart) / (daySeconds * 1000)));
  };
  return `STD0DST,J${dayOfYear(10)},J${dayOfYear(200)}`;
}

describe("a replayed job", () => {
  test("starts again from its first attempt and keeps its history", async () => {
    const id = await queue.buryOne({ payload: { n: 1 }, maxAttempts: 1 });
    const changed = await db.run(replay("ann", { id }));
    expect(changed).toMatchObject({
      applied: true,
      job: {
        ...{ status: "pending", attempts: 0, deadReason: null, payload: { n: 1 } },
        errors: [{ attempt: 1, message: "no use" }],
      },
    });
    expect(changed?.job).toEqual(await queue.find(id));
    const job = await queue.claimOne();
    expect(job).toMatchObject({ id, attempt: 1, abandonments: 0 });
    await queue.settle([job], complete);
    expect(await queue.find(id)).toMatchObject({ status: "completed", attempts: 1 });
  });

  test("has an audit entry with its state before", async () => {
    const id = await queue.buryOne();
    await isReplayed(id);
    expect(await newestAudit(db)).toMatchObject({
      actor: "ann",
      action: "replay",
      target: `job ${id}`,
      before: { status: "dead", dead_reason: "fatal", attempts: 1 },
      after: { status: "pending", attempts: 0 },
    });
  });

  test("can get a new payload, and the audit has both payloads", async () => {
    const id = await queue.buryOne({ payload: { n: 1 } });
    const changed = await db.run(replay("ann", { id, payload: { n: 2 } }));
    expect(changed?.job.payload).toEqual({ n: 2 });
    expect(await queue.claimOne()).toMatchObject({ id, payload: { n: 2 } });
    expect(await newestAudit(db)).toMatchObject({
      before: { payload: { n: 1 } },
      after: { payload: { n: 2 } },
    });
  });

  test("stays dead if the new payload is not an object", async () => {
    const id = await queue.buryOne();
    expect(await sqlState(queue.query("select sluice.replay('ann', $1, '[]')", [id]))).toBe("22023");
    expect(await queue.find(id)).toMatchObject({ status: "dead", payload: {} });
  });

  test("that had expired gets 30 more days", async () => {
    const id = await expire();
    await isReplayed(id);
    const job = await queue.find(id);
    expect(secondsFromNow(job.expiresAt)).toBeCloseTo(30 * daySeconds, -2);
    expect(await db.run(reapExpired({ limit: 10 }))).toBe(0);
    expect(await queue.claim()).toMatchObject([{ id }]);
  });

  test("gets as many hours when the session's clock skips an hour meanwhile", async () => {
    const id = await expire();
    await inSession(db.pool, async (client) => {
      await client.query(`set timezone to '${zoneWithLostHour()}'`);
      await client.query("select sluice.replay('ann', $1)", [id]);
    });
    const job = await queue.find(id);
    expect(secondsFromNow(job.expiresAt)).toBeCloseTo(30 * daySeconds, -2);
  });

  test("is no longer isolated", async () => {
    const id = await queue.enqueueOne({ maxAttempts: 1 });
    await queue.claimOne({ leaseSeconds: -1 });
    await queue.query("select sluice.reap_leases(10)");
    await queue.query(
      `with isolated as (insert into sluice.lane (queue, type, priority, group_size)
                         select queue, type, priority, 1 from sluice.lane returning lane)
       update sluice.closed set lane = isolated.lane, abandonments = 1 from isolated`,
    );
    expect(await isReplayed(id)).toBe(true);
    const [job] = await queue.query<{ group_size: number; abandonments: number | null }>(
      "select group_size, abandonments from sluice.ready join sluice.lane using (lane)",
    );
    expect(job).toMatchObject({ group_size: 0 });
    expect(await queue.claimOne()).toMatchObject({ id, abandonments: 0 });
  });

  test("must be dead: any other stays unchanged, and nothing is audited", async () => {
    const { dead, unknown, ...others } = await oneOfEach(db, queue);
    const audited = await queue.count("audit");
    for (const [state, id] of Object.entries(others)) {
      const changed = await db.run(replay("ann", { id }));
      expect([state, changed?.applied, changed?.job]).toEqual([state, false, await queue.find(id)]);
    }
    expect(await db.run(replay("ann", { id: unknown }))).toBe(null);
    expect(await queue.count("audit")).toBe(audited);
    expect([await isReplayed(dead), await isReplayed(dead)]).toEqual([true, false]);
  });

  test("is replayed or discarded once when several calls run concurrently, and audited once", async () => {
    const id = await queue.buryOne();
    const audited = await queue.count("audit");
    const answers = await Promise.all([
      ...times(8, () => isReplayed(id)),
      queue.isApplied(discard("bob", { id })),
    ]);
    expect(answers.filter(Boolean)).toHaveLength(1);
    expect(await queue.count("audit")).toBe(audited + 1);
  });
});

describe("the jobs of a replay of many", () => {
  test("are the oldest of a type, up to a count, across its queues; one audit entry names them", async () => {
    const ids = [...(await bury(2)), ...(await bury(1, { queue: "heavy" }))];
    const [later = ""] = await bury(1);
    await bury(1, { type: "other" });
    const replayed = await db.run(replayMany("ann", { type: "echo", count: 3 }));
    expect(replayed.toSorted((a, b) => a.replayed - b.replayed)).toEqual([
      { queue: "heavy", replayed: 1 },
      { queue: "default", replayed: 2 },
    ]);
    expect(await queue.find(later)).toMatchObject({ status: "dead" });
    expect(await queue.count("closed")).toBe(2);
    expect(await newestAudit(db)).toMatchObject({
      actor: "ann",
      action: "replay many",
      target: "type echo",
      before: { status: "dead", dead_reason: null },
      after: { status: "pending", replayed: 3, ids },
    });
  });

  test("can be filtered by the reason of death", async () => {
    const [fatal = ""] = await bury(1);
    await exhaust();
    expect(await db.run(replayMany("ann", { type: "echo", reason: "exhausted", count: 10 }))).toEqual([
      { queue: "default", replayed: 1 },
    ]);
    expect(await queue.find(fatal)).toMatchObject({ status: "dead" });
  });

  test("can be counted beforehand, which changes nothing", async () => {
    await bury(3);
    await exhaust();
    const audited = await queue.count("audit");
    expect(await db.run(countDead({ type: "echo" }))).toMatchObject({ dead: 4 });
    expect(await db.run(countDead({ type: "echo", reason: "exhausted" }))).toMatchObject({ dead: 1 });
    expect(await queue.count("closed")).toBe(4);
    expect(await queue.count("audit")).toBe(audited);
  });

  test("are each replayed once by concurrent calls", async () => {
    await bury(12);
    const answers = await Promise.all(times(6, () => db.run(replayMany("ann", { type: "echo", count: 12 }))));
    expect(answers.flat().reduce((sum, row) => sum + row.replayed, 0)).toBe(12);
    expect(await queue.claim()).toHaveLength(12);
  });
});

test("the books balance after replays and discards", async () => {
  const [first = "", second = ""] = await bury(5);
  await isReplayed(first);
  await db.run(discard("ann", { id: second }));
  await db.run(replayMany("ann", { type: "echo", count: 2 }));
  expect(only(await db.run(books()))).toMatchObject({ enqueued: 5, pending: 3, dead: 1, discarded: 1 });
});
