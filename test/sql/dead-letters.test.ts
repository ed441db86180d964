// Dead letters: listed in pages, replayed one by one or many at once, discarded; each change audited.
import { beforeEach, describe, expect, test } from "vitest";
import {
  books,
  cancel,
  countDeadLetters,
  discardAs,
  listDeadLetters,
  replayAs,
  replayManyAs,
} from "../../src/core/sql/index.ts";
import { newestAudit } from "../support/audit.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { only, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

async function bury(count: number, fields: Parameters<typeof queue.buryOne>[0] = {}): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) ids.push(await queue.buryOne(fields));
  return ids;
}

/** Dead for it used up its one attempt. */
async function exhaust(): Promise<string> {
  const id = await queue.enqueueOne({ maxAttempts: 1 });
  await queue.settle([await queue.claimOne()], { kind: "retry", message: "busy" });
  return id;
}

const list = async (filter: Partial<Parameters<typeof listDeadLetters>[0]> = {}) =>
  (await db.run(listDeadLetters({ limit: 100, ...filter }))).map((job) => job.id);

describe("list", () => {
  test("only dead jobs, newest first, each with all its errors", async () => {
    const ids = await bury(3);
    await queue.enqueueOne();
    const [discarded] = await bury(1, { type: "other" });
    await db.run(discardAs("ann", { id: discarded ?? "" }));
    expect(await list()).toEqual(ids.toReversed());
    const [newest] = await db.run(listDeadLetters({ limit: 1 }));
    expect(newest).toMatchObject({ status: "dead", deadReason: "fatal", errors: [{ message: "no use" }] });
  });

  test("by type and by reason", async () => {
    const [echo] = await bury(1);
    const [other] = await bury(1, { type: "other" });
    const exhausted = await exhaust();
    expect(await list({ type: "other" })).toEqual([other]);
    expect(await list({ reason: "exhausted" })).toEqual([exhausted]);
    expect(await list({ type: "echo", reason: "fatal" })).toEqual([echo]);
    expect(await list({ type: "nobody" })).toEqual([]);
  });

  test("pages meet without a gap, though jobs die and are replayed in between", async () => {
    const ids = await bury(7);
    const first = await list({ limit: 3 });
    await bury(1);
    await db.run(replayAs("ann", { id: first.at(-1) ?? "" }));
    const second = await list({ before: first.at(-1), limit: 3 });
    const third = await list({ before: second.at(-1), limit: 3 });
    expect([...first, ...second, ...third]).toEqual(ids.toReversed());
  });
});

describe("replay one", () => {
  test("it is pending again from attempt 0, and the audit says what it was", async () => {
    const [id = ""] = await bury(1, { payload: { a: 1 } });
    expect(await db.run(replayAs("ann", { id }))).toBe(true);
    expect(await queue.find(id)).toMatchObject({ status: "pending", attempts: 0, payload: { a: 1 } });
    expect(await newestAudit(db)).toMatchObject({
      actor: "ann",
      action: "replay",
      target: `job ${id}`,
      before: { status: "dead", dead_reason: "fatal", attempts: 1 },
      after: { status: "pending", attempts: 0 },
    });
  });

  test("with another payload, which the audit has beside the old one", async () => {
    const [id = ""] = await bury(1, { payload: { a: 1 } });
    await db.run(replayAs("ann", { id, payload: { a: 2 } }));
    expect(await queue.claim()).toMatchObject([{ id, payload: { a: 2 } }]);
    expect(await newestAudit(db)).toMatchObject({
      before: { payload: { a: 1 } },
      after: { payload: { a: 2 } },
    });
  });

  test("a job that is not dead stays as it is, and nothing is audited", async () => {
    const id = await queue.enqueueOne();
    const audited = await queue.count("audit");
    expect(await db.run(replayAs("ann", { id }))).toBe(false);
    expect(await db.run(discardAs("ann", { id }))).toBe(false);
    await db.run(cancel(id));
    expect(await db.run(replayAs("ann", { id }))).toBe(false);
    expect(await queue.count("audit")).toBe(audited);
  });

  test("of several at once, and a discard, one has the job and one is audited", async () => {
    const [id = ""] = await bury(1);
    const audited = await queue.count("audit");
    const answers = await Promise.all([
      ...times(8, () => db.run(replayAs("ann", { id }))),
      db.run(discardAs("bob", { id })),
    ]);
    expect(answers.filter(Boolean)).toHaveLength(1);
    expect(await queue.count("audit")).toBe(audited + 1);
  });
});

describe("discard", () => {
  test("it is discarded for good, and the audit says why", async () => {
    const [id = ""] = await bury(1);
    expect(await db.run(discardAs("ann", { id, reason: "a test order" }))).toBe(true);
    expect(await queue.find(id)).toMatchObject({ status: "discarded" });
    expect(await newestAudit(db)).toMatchObject({
      actor: "ann",
      action: "discard",
      target: `job ${id}`,
      before: { status: "dead", dead_reason: "fatal" },
      after: { status: "discarded", reason: "a test order" },
    });
    expect(await db.run(replayAs("ann", { id }))).toBe(false);
  });
});

describe("replay many", () => {
  test("the oldest of a type, up to a count, over all its queues; one entry names them", async () => {
    const ids = [...(await bury(2)), ...(await bury(1, { queue: "heavy" }))];
    const [later] = await bury(1);
    const [other] = await bury(1, { type: "other" });
    const replayed = await db.run(replayManyAs("ann", { type: "echo", count: 3 }));
    expect(replayed.toSorted((a, b) => a.replayed - b.replayed)).toEqual([
      { queue: "heavy", replayed: 1 },
      { queue: "default", replayed: 2 },
    ]);
    expect(await list()).toEqual([other, later]);
    expect(await newestAudit(db)).toMatchObject({
      actor: "ann",
      action: "replay many",
      target: "type echo",
      before: { status: "dead", dead_reason: null },
      after: { status: "pending", replayed: 3, ids },
    });
  });

  test("only those that died of a reason", async () => {
    const [fatal] = await bury(1);
    await exhaust();
    expect(await db.run(replayManyAs("ann", { type: "echo", reason: "exhausted", count: 10 }))).toEqual([
      { queue: "default", replayed: 1 },
    ]);
    expect(await list()).toEqual([fatal]);
  });

  test("a count says the same number beforehand and changes nothing", async () => {
    await bury(3);
    await exhaust();
    const audited = await queue.count("audit");
    expect(await db.run(countDeadLetters({ type: "echo", count: 10 }))).toBe(4);
    expect(await db.run(countDeadLetters({ type: "echo", count: 2 }))).toBe(2);
    expect(await db.run(countDeadLetters({ type: "echo", reason: "exhausted", count: 10 }))).toBe(1);
    expect(await list()).toHaveLength(4);
    expect(await queue.count("audit")).toBe(audited);
  });

  test("by several at once brings each job back once", async () => {
    await bury(12);
    const answers = await Promise.all(
      times(6, () => db.run(replayManyAs("ann", { type: "echo", count: 12 }))),
    );
    expect(answers.flat().reduce((sum, row) => sum + row.replayed, 0)).toBe(12);
    expect(await queue.claim()).toHaveLength(12);
  });
});

test("the books balance after replays and discards", async () => {
  const [first = "", second = ""] = await bury(5);
  await db.run(replayAs("ann", { id: first }));
  await db.run(discardAs("ann", { id: second }));
  await db.run(replayManyAs("ann", { type: "echo", count: 2 }));
  expect(only(await db.run(books()))).toMatchObject({ enqueued: 5, pending: 3, dead: 1, discarded: 1 });
});
