// Fair shares lose no job: transactions that commit late, cancels that stay open, and claims of some types only.
import type pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { advanceCursors, enqueue, pause, resume } from "../../src/core/sql/index.ts";
import { runOn } from "../model/gate/gate-sql.ts";
import { differences } from "../support/balance.ts";
import { keyedJobsOf, numbered, sorted } from "../support/keyed-jobs.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { wrongKeys } from "../support/turns.ts";

const db = useTestDatabase();
const jobs = keyedJobsOf(db, "fairKey");
const { verbs } = jobs;
const types = ["echo", "other"];
const open: pg.PoolClient[] = [];
beforeEach(async () => {
  await emptyQueue(db.pool);
  await jobs.put("z1");
  await jobs.put("z2", { type: "other" });
  await jobs.drain({ types });
});
afterEach(async () => {
  for (const client of open.splice(0)) await end(client, "rollback");
  expect(await wrongKeys(db.pool)).toEqual([]);
  expect(await differences(verbs)).toEqual([]);
});

/** Runs `work` in a transaction that stays open. */
async function openWith(work: (client: pg.PoolClient) => Promise<unknown>): Promise<pg.PoolClient> {
  const client = await db.pool.connect();
  open.push(client);
  await client.query("begin");
  await work(client);
  return client;
}

async function end(client: pg.PoolClient, how: "commit" | "rollback"): Promise<void> {
  await client.query(how);
  if (open.includes(client)) open.splice(open.indexOf(client), 1);
  client.release();
}

describe.each([
  ["no cap", {}],
  ["a cap of 1", { policy: { concurrency: 1 } }],
  ["a cap of 2", { policy: { concurrency: 2 } }],
])("with %s", (_, policy) => {
  const options = { types, ...policy };
  const drain = (more = {}) => jobs.drain({ ...options, ...more });

  test("jobs that were committed late are claimed, also of several types", async () => {
    const late = await openWith(async (client) => {
      await runOn(client, enqueue(jobs.requests("a1")));
      await runOn(client, enqueue(jobs.requests("a2", { type: "other" })));
      await runOn(client, enqueue(jobs.requests("a3")));
    });
    await jobs.put(numbered("a", 4, 9));
    await drain();
    await end(late, "commit");
    await jobs.put("a10");
    expect(sorted(await drain())).toBe("a1 a10 a2 a3");
  });

  test("jobs that were committed late are claimed while later ones run", async () => {
    const late = await openWith((client) => runOn(client, enqueue(jobs.requests("a1 a2 a3"))));
    await jobs.put(numbered("a", 4, 9));
    const taken = await jobs.take({ ...options, limit: 1 });
    await db.run(advanceCursors());
    await end(late, "commit");
    const more = await jobs.take(options);
    await jobs.end(`${taken} ${more}`.trim());
    const rest = await drain();
    expect(sorted(`${taken} ${more} ${rest}`)).toBe(sorted(numbered("a", 1, 9)));
  });

  test("jobs that were committed late are claimed after a claim that did not ask for their type", async () => {
    const late = await openWith(async (client) => {
      await runOn(client, enqueue(jobs.requests("a1", { type: "other" })));
      await runOn(client, enqueue(jobs.requests("a2 a3")));
      await runOn(client, enqueue(jobs.requests("a4", { type: "other" })));
    });
    await jobs.put("a5 a6");
    const first = await jobs.take({ ...options, limit: 1 });
    await end(late, "commit");
    const second = await jobs.take({ ...options, types: ["echo"], limit: 1 });
    await jobs.end(`${first} ${second}`.trim());
    const third = await drain({ types: ["echo"] });
    const rest = await drain();
    expect(sorted(`${first} ${second} ${third} ${rest}`)).toBe(sorted(numbered("a", 1, 6)));
  });

  test.each([1, 2, 3])(
    "jobs are claimed after a cancel of a%i stayed open and was rolled back",
    async (n) => {
      await jobs.put("a1");
      await jobs.put("a2", { type: "other" });
      await jobs.put("a3 a4 a5");
      const id = await jobs.idOf(`a${n}`);
      const cancel = await openWith((client) => client.query("select sluice.cancel($1)", [id]));
      const meanwhile = await drain();
      await jobs.put("a6 a7");
      const later = await drain();
      await end(cancel, "rollback");
      const rest = await drain();
      expect(sorted(`${meanwhile} ${later} ${rest}`)).toBe(sorted(numbered("a", 1, 7)));
    },
  );

  test("jobs of a type that nobody asked for, or that was paused, are claimed later", async () => {
    await jobs.put("a1", { type: "other" });
    await jobs.put("a2 a3");
    await jobs.put("a4", { type: "other" });
    await jobs.put("a5");
    const first = await drain({ types: ["echo"] });
    await db.run(pause("ann", { type: "other" }));
    await jobs.put("a6", { type: "other" });
    await jobs.put("a7");
    const second = await drain();
    await db.run(resume("ann", { type: "other" }));
    const third = await drain();
    expect(sorted(`${first} ${second} ${third}`)).toBe(sorted(numbered("a", 1, 7)));
  });

  test("jobs that were put back are claimed again, beside new ones", async () => {
    await jobs.put(numbered("a", 1, 6));
    const taken = await jobs.take({ ...options, limit: 2 });
    await jobs.end(taken, { kind: "release" });
    await jobs.put("a7");
    expect(sorted(await drain({ limit: 2 }))).toBe(sorted(numbered("a", 1, 7)));
  });
});
