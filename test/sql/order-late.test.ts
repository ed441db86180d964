// Order is that of commits as far as a client can tell: if an enqueue was committed before another one began, it comes first.
// Transactions that stay open while the queue moves on, and commit late.
import type pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { advanceCursors, checkReach, enqueue, pause, reapExpired, resume } from "../../src/core/sql/index.ts";
import { runOn } from "../model/gate/gate-sql.ts";
import { differences } from "../support/balance.ts";
import { keyedJobsOf, numbered, ofKey } from "../support/keyed-jobs.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { wrongKeys } from "../support/turns.ts";

const db = useTestDatabase();
const jobs = keyedJobsOf(db);
const { verbs } = jobs;
const open: pg.PoolClient[] = [];
let others = 0;

beforeEach(async () => {
  await emptyQueue(db.pool);
  await jobs.put("z0"); // lane and cursors exist
  await jobs.drain();
});
afterEach(async () => {
  for (const client of open.splice(0)) await end(client, "rollback");
  expect(await wrongKeys(db.pool)).toEqual([]);
  expect(await differences(verbs)).toEqual([]);
});

/** Enqueues jobs in a transaction that stays open. */
async function openWith(names: string, fields = {}): Promise<pg.PoolClient> {
  const client = await db.pool.connect();
  open.push(client);
  await client.query("begin");
  await runOn(client, enqueue(jobs.requests(names, fields)));
  return client;
}

async function end(client: pg.PoolClient, how: "commit" | "rollback"): Promise<void> {
  await client.query(how);
  if (open.includes(client)) open.splice(open.indexOf(client), 1);
  client.release();
}

/** Other keys' jobs come and go, and every cursor moves past them. Answers with the jobs of the test that were claimed. */
async function moveOn(rounds = 4): Promise<string[]> {
  const claimed: string[] = [];
  for (let round = 0; round < rounds; round++) {
    await jobs.put(numbered(`m${++others}k`, 1, 3));
    await jobs.put(numbered(`n${others}k`, 1, 40), { partitionKey: `n${others}k` });
    const taken = await jobs.take({ run: 50 });
    const moved = taken.split(" ").filter((name) => /^[mn]/.test(name));
    claimed.push(...taken.split(" ").filter((name) => /^[a-f]/.test(name)));
    if (moved.length > 0) await jobs.end(moved.join(" "));
    await db.run(advanceCursors());
    await db.run(checkReach());
  }
  return claimed;
}

const orderOf = async (key: string, options = {}) => ofKey(key, await jobs.drain(options));

describe.each([1, 5])("a job that was committed late, with runs of up to %i,", (run) => {
  test("comes before one that was enqueued after its commit", async () => {
    const late = await openWith("a1");
    await moveOn();
    await end(late, "commit");
    await jobs.put("a2");
    expect(await orderOf("a", { run })).toBe("a1 a2");
  });

  test("comes before it also when its key was worked before", async () => {
    await jobs.put("a0");
    await jobs.drain();
    const late = await openWith("a1 a2");
    await moveOn();
    await end(late, "commit");
    await jobs.put("a3");
    expect(await orderOf("a", { run })).toBe("a1 a2 a3");
  });

  test("comes before it also while another job of the key runs", async () => {
    await jobs.put("a0");
    await jobs.take();
    const late = await openWith("a1");
    await moveOn();
    await end(late, "commit");
    await jobs.put("a2");
    await moveOn();
    await jobs.end("a0");
    expect(await orderOf("a", { run })).toBe("a1 a2");
  });

  test("is found when later jobs of its key were worked before the commit", async () => {
    const late = await openWith("a1");
    await jobs.put("a2 a3 a4");
    expect(ofKey("a", await jobs.take())).toBe("a2");
    await moveOn();
    await end(late, "commit");
    await jobs.end("a2");
    await jobs.put("a5");
    const order = (await orderOf("a", { run })).split(" ");
    expect(order.toSorted()).toEqual(["a1", "a3", "a4", "a5"]);
    expect(order.indexOf("a1")).toBeLessThan(order.indexOf("a5"));
    expect(order.filter((name) => name !== "a1")).toEqual(["a3", "a4", "a5"]);
  });

  test("is found with all others of its transaction when later jobs of its key were worked before", async () => {
    const late = await openWith("a1 a2 a3");
    await jobs.put("a4 a5");
    expect(ofKey("a", await jobs.take())).toBe("a4");
    await end(late, "commit");
    await jobs.end("a4");
    await jobs.put("a6");
    const order = (await orderOf("a", { run })).split(" ");
    expect(order.filter((name) => name !== "a5")).toEqual(["a1", "a2", "a3", "a6"]);
    expect(order).toContain("a5");
  });

  test("is found when all later jobs of its key have ended", async () => {
    const late = await openWith("a1");
    await jobs.put("a2");
    expect(await orderOf("a")).toBe("a2");
    await moveOn();
    await end(late, "commit");
    expect(await orderOf("a", { run })).toBe("a1");
  });

  test("is found behind a retry that holds the turn, and keeps its place among the waiting", async () => {
    await jobs.put("a0");
    await jobs.take();
    const late = await openWith("a1");
    await jobs.end("a0", { kind: "retry", message: "busy", retryInSeconds: 60 });
    await moveOn();
    await end(late, "commit");
    await jobs.put("a2");
    await moveOn();
    await jobs.makeDue();
    expect(await orderOf("a", { run })).toBe("a0 a1 a2");
  });

  test("is found behind a retry that holds the turn also when the policy has changed before", async () => {
    const late = await openWith("a1");
    await jobs.put("a2");
    await jobs.take({ run });
    await jobs.end("a2", { kind: "snooze", retryInSeconds: 60 });
    await jobs.take({ types: ["other"], policy: { onDead: "block", concurrency: 2 } });
    await end(late, "commit");
    await jobs.take({ types: ["other"], policy: { onDead: "block", concurrency: 3 } });
    await jobs.makeDue();
    expect(await orderOf("a", { run })).toBe("a2 a1");
  });

  test("is found behind a dead job that blocks", async () => {
    await jobs.put("a0");
    await jobs.take();
    const late = await openWith("a1");
    await jobs.end("a0", { kind: "bury", message: "no use" });
    await moveOn();
    await end(late, "commit");
    await jobs.put("a2");
    await moveOn();
    await verbs.query("select sluice.discard('ann', $1)", [await jobs.idOf("a0")]);
    expect(await orderOf("a", { run })).toBe("a1 a2");
  });

  test("comes before it with many open writers that end one after the other", async () => {
    const keys = [..."abcdef"];
    const writers: pg.PoolClient[] = [];
    for (const key of keys) writers.push(await openWith(`${key}1`));
    await moveOn();
    const order: string[] = [];
    for (const [index, key] of keys.entries()) {
      await end(writers[index] as pg.PoolClient, index % 2 === 0 ? "commit" : "rollback");
      await jobs.put(`${key}2`);
      const claimed = await moveOn(1);
      order.push(...claimed);
      if (claimed.length > 0) await jobs.end(claimed.join(" "));
    }
    order.push(await jobs.drain({ run }));
    for (const [index, key] of keys.entries())
      expect(ofKey(key, order.join(" "))).toBe(index % 2 === 0 ? `${key}1 ${key}2` : `${key}2`);
  });

  test("keeps its order within its transaction, with others that commit before and after it", async () => {
    const first = await openWith("a1");
    const second = await openWith("a11");
    await runOn(first, enqueue(jobs.requests("a2")));
    await moveOn(2);
    await runOn(second, enqueue(jobs.requests("a12")));
    await runOn(first, enqueue(jobs.requests("a3")));
    await moveOn(2);
    await end(second, "commit");
    await end(first, "commit");
    await jobs.put("a20");
    const order = (await orderOf("a", { run })).split(" ");
    expect(order.filter((name) => ["a1", "a2", "a3"].includes(name))).toEqual(["a1", "a2", "a3"]);
    expect(order.filter((name) => ["a11", "a12"].includes(name))).toEqual(["a11", "a12"]);
    expect(order.at(-1)).toBe("a20");
    expect(order).toHaveLength(6);
  });

  test("comes before it also when the queue was paused meanwhile", async () => {
    const late = await openWith("a1");
    await db.run(pause("ann", { queue: "default" }));
    await moveOn();
    await end(late, "commit");
    await jobs.put("a2");
    await moveOn();
    await db.run(resume("ann", { queue: "default" }));
    expect(await orderOf("a", { run })).toBe("a1 a2");
  });

  test("expires like any other", async () => {
    const late = await openWith("a1", { expiresAt: new Date(Date.now() - 1000) });
    await moveOn();
    await end(late, "commit");
    await jobs.put("a2");
    await db.run(reapExpired({ limit: 10 }));
    const policy = { onDead: "pass" } as const;
    expect(await orderOf("a", { run, policy })).toBe("a2");
    expect(await jobs.statusOf("a1")).toBe("dead");
  });
});

test("a transaction that makes the first lane of its queue and commits late loses nothing and keeps its place", async () => {
  const late = await openWith("a1", { queue: "fresh" });
  await jobs.put("a2 b1", { queue: "fresh" });
  expect(await jobs.take({ queue: "fresh" })).toBe("a2 b1");
  await moveOn();
  await end(late, "commit");
  await jobs.put("a3", { queue: "fresh" });
  expect(await jobs.take({ queue: "fresh" })).toBe("");
  await jobs.end("a2 b1");
  expect(await jobs.drain({ queue: "fresh" })).toBe("a1 a3");
});

test("delayed jobs of a transaction that commits late are found", async () => {
  const late = await openWith("a1 a2", { delaySeconds: 0.001 });
  await moveOn();
  await end(late, "commit");
  const claimed = await moveOn(2);
  if (claimed.length > 0) await jobs.end(claimed.join(" "));
  expect(`${claimed.join(" ")} ${await jobs.drain()}`.trim()).toBe("a1 a2");
});

test("order is kept after reset_cursors(), also with a transaction that is open meanwhile", async () => {
  await jobs.put("a1 a2 b1");
  await jobs.take();
  const late = await openWith("b2");
  await moveOn(2);
  await verbs.query("select sluice.reset_cursors()");
  await moveOn(2);
  await end(late, "commit");
  await jobs.put("b3 a3");
  await jobs.end("a1 b1");
  const order = await jobs.drain();
  expect([ofKey("a", order), ofKey("b", order)]).toEqual(["a2 a3", "b2 b3"]);
});

test("rollbacks leave nothing behind that keeps a key still", async () => {
  for (let round = 0; round < 3; round++) {
    const undone = await openWith(`a${round + 10}`);
    await moveOn(2);
    await end(undone, "rollback");
    await jobs.put(`a${round + 1}`);
    expect(await orderOf("a")).toBe(`a${round + 1}`);
  }
});
