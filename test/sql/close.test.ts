// What people do to single jobs: cancel what is pending, replay or discard what is dead.
import { beforeEach, describe, expect, test } from "vitest";
import { cancel, discard, reapExpired, replay } from "../../src/core/sql/index.ts";
import { sqlState } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, daySeconds, secondsFromNow, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const unknownId = "01900000-0000-7000-8000-000000000000";
const isCancelled = async (id: string) => await db.run(cancel(id));

/** A job in each state that it can be in. */
async function oneOfEach() {
  const processing = await queue.enqueueOne();
  await queue.claimOne();
  const completed = await queue.enqueueOne();
  await queue.settle([await queue.claimOne()], complete);
  const dead = await queue.buryOne();
  const discarded = await queue.buryOne();
  await db.run(discard([discarded]));
  const cancelled = await queue.enqueueOne();
  await db.run(cancel(cancelled));
  const ready = await queue.enqueueOne();
  const scheduled = await queue.enqueueOne({ delaySeconds: 60 });
  return { processing, completed, dead, discarded, cancelled, ready, scheduled, unknown: unknownId };
}

describe("cancel", () => {
  test.each([{}, { delaySeconds: 60 }])("a pending job (%o) is cancelled and never runs", async (fields) => {
    const id = await queue.enqueueOne(fields);
    expect(await isCancelled(id)).toBe(true);
    expect(await queue.find(id)).toMatchObject({ status: "cancelled", attempts: 0, deadReason: null });
    await queue.query("update sluice.scheduled set run_at = now()");
    expect(await queue.claim()).toEqual([]);
    expect(await isCancelled(id)).toBe(false);
  });

  test("a job that waits for its next attempt is cancelled, and its errors stay", async () => {
    const id = await queue.enqueueOne();
    await queue.settle([await queue.claimOne()], { kind: "retry", message: "busy", retryInSeconds: 60 });
    expect(await isCancelled(id)).toBe(true);
    expect(await queue.find(id)).toMatchObject({
      status: "cancelled",
      attempts: 1,
      errors: [{ message: "busy" }],
    });
  });

  test("only a pending job can be cancelled", async () => {
    const answers: Record<string, boolean> = {};
    for (const [state, id] of Object.entries(await oneOfEach())) answers[state] = await isCancelled(id);
    expect(Object.keys(answers).filter((state) => answers[state])).toEqual(["ready", "scheduled"]);
  });

  test("of a claim and a cancel at once, one has the job", { timeout: 20_000 }, async () => {
    for (let round = 0; round < 30; round++) {
      const id = await queue.enqueueOne();
      const [claimed, cancelled] = await Promise.all([queue.claim(), isCancelled(id)]);
      expect([claimed.length, cancelled]).toEqual(cancelled ? [0, true] : [1, false]);
      expect(await queue.find(id)).toMatchObject({ status: cancelled ? "cancelled" : "processing" });
    }
  });
});

describe("replay", () => {
  test("a dead job starts again from its first attempt, and its history stays", async () => {
    const id = await queue.buryOne({ payload: { n: 1 }, maxAttempts: 1 });
    expect(await db.run(replay([id]))).toEqual([id]);
    expect(await queue.find(id)).toMatchObject({
      ...{ status: "pending", attempts: 0, deadReason: null, payload: { n: 1 } },
      errors: [{ attempt: 1, message: "no use" }],
    });
    const job = await queue.claimOne();
    expect(job).toMatchObject({ id, attempt: 1, abandonments: 0 });
    await queue.settle([job], complete);
    expect(await queue.find(id)).toMatchObject({ status: "completed", attempts: 1 });
  });

  test("a new payload takes the place of the old one", async () => {
    const id = await queue.buryOne({ payload: { n: 1 } });
    await db.run(replay([id], { n: 2 }));
    expect(await queue.claimOne()).toMatchObject({ id, payload: { n: 2 } });
  });

  test("a job that died of its expiry gets 30 days more", async () => {
    const id = await queue.enqueueOne({ expiresAt: new Date(Date.now() - 1000) });
    expect(await db.run(reapExpired({ limit: 10 }))).toBe(1);
    await db.run(replay([id]));
    const job = await queue.find(id);
    expect(secondsFromNow(job.expiresAt)).toBeCloseTo(30 * daySeconds, -2);
    expect(await db.run(reapExpired({ limit: 10 }))).toBe(0);
    expect(await queue.claim()).toMatchObject([{ id }]);
  });

  test("a new payload that is no object is refused, and the job stays dead", async () => {
    const id = await queue.buryOne();
    expect(await sqlState(queue.query("select sluice.replay($1, '[]')", [[id]]))).toBe("22023");
    expect(await queue.find(id)).toMatchObject({ status: "dead", payload: {} });
  });

  test("only dead jobs are replayed, and the answer names them", async () => {
    const jobs = await oneOfEach();
    expect(await db.run(replay(Object.values(jobs)))).toEqual([jobs.dead]);
    expect(await db.run(replay(Object.values(jobs)))).toEqual([]);
  });

  test("several replays of the same jobs at once bring each back once", async () => {
    const ids: string[] = [];
    for (let n = 0; n < 10; n++) ids.push(await queue.buryOne());
    const answers = await Promise.all(times(8, () => db.run(replay(ids))));
    expect(answers.flat().toSorted()).toEqual(ids.toSorted());
    expect(await queue.claim()).toHaveLength(10);
  });
});

describe("discard", () => {
  test("only dead jobs are discarded, for good, and the answer names them", async () => {
    const jobs = await oneOfEach();
    expect(await db.run(discard(Object.values(jobs)))).toEqual([jobs.dead]);
    expect(await queue.find(jobs.dead)).toMatchObject({ status: "discarded", deadReason: "fatal" });
    expect(await db.run(replay([jobs.dead]))).toEqual([]);
    expect(await db.run(discard([jobs.dead]))).toEqual([]);
  });

  test("of a replay and a discard at once, one has the job", async () => {
    for (let round = 0; round < 20; round++) {
      const id = await queue.buryOne({ type: `round-${round}` });
      const [replayed, discarded] = await Promise.all([db.run(replay([id])), db.run(discard([id]))]);
      expect(replayed.length + discarded.length).toBe(1);
      expect(await queue.find(id)).toMatchObject({ status: replayed.length === 1 ? "pending" : "discarded" });
    }
  });
});

test("many can be replayed one after the other, so that a replay is not a second outage", async () => {
  const ids = [await queue.buryOne(), await queue.buryOne(), await queue.buryOne()];
  await queue.query("select sluice.replay($1, null, 30)", [ids]);
  const [first, second, third] = await Promise.all(ids.map((id) => queue.find(id)));
  const secondsBetween = (a?: Date, b?: Date) =>
    Math.round(((b?.getTime() ?? 0) - (a?.getTime() ?? 0)) / 1000);
  expect((await queue.claim()).map((job) => job.id)).toEqual([first?.id]);
  expect(secondsBetween(second?.scheduledAt, third?.scheduledAt)).toBe(30);
});
