// advance_cursors: cursors move past claimed jobs, and no job is lost, whatever transactions are open meanwhile.
import type pg from "pg";
import { beforeEach, describe, expect, test } from "vitest";
import { advanceCursors } from "../../src/core/sql/index.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, only, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);

beforeEach(() => emptyQueue(db.pool));

async function openWithJob(): Promise<{ client: pg.PoolClient; id: string }> {
  const client = await db.pool.connect();
  await client.query("begin");
  const { rows } = await client.query<{ id: string }>("select sluice.enqueue('echo') as id");
  return { client, id: only(rows).id };
}

async function commit({ client }: { client: pg.PoolClient }): Promise<void> {
  await client.query("commit");
  client.release();
}

/** The number of seqs handed out that the cursor of the one lane in use has not passed. */
async function lag(): Promise<number> {
  const rows = await queue.query<{ lag: number }>(`
    select min((select last_value from sluice.ready_seq) - cursor_seqs[lane])::int as lag
    from sluice.lane cross join sluice.cursors`);
  return only(rows).lag;
}

const churn = async () => {
  await queue.enqueue(...Array.from({ length: 50 }, () => ({})));
  await queue.settle(await queue.claim(), complete);
};

describe("the cursors", () => {
  test("keep up while some transaction is always open, and no job of those transactions is lost", async () => {
    await queue.enqueueOne(); // the lane exists before they begin
    const open: Awaited<ReturnType<typeof openWithJob>>[] = [];
    const late: string[] = [];
    for (let round = 0; round < 12; round++) {
      const opened = await openWithJob();
      open.push(opened);
      late.push(opened.id);
      await churn();
      await db.run(advanceCursors());
      // Each stays open for two advances, so every advance meets an open transaction.
      if (open.length > 2) await commit(open.shift() as (typeof open)[number]);
    }
    expect(await lag()).toBeLessThanOrEqual(2 * 51);
    await Promise.all(open.map(commit));
    const claimed = new Set((await queue.claim()).map((job) => job.id));
    await db.run(advanceCursors());
    await db.run(advanceCursors());
    for (const job of await queue.claim()) claimed.add(job.id);
    const lateClaims = late.filter((id) => claimed.has(id));
    const done = await Promise.all(late.map(async (id) => (await queue.find(id)).status));
    expect(late.length - lateClaims.length).toBe(done.filter((status) => status === "completed").length);
  });

  test("move back when their advance is rolled back, and no job is lost", async () => {
    await queue.enqueueOne();
    const holder = await openWithJob();
    await churn();
    await db.run(advanceCursors()); // records the open transaction
    await churn();
    const before = await lag();
    const undone = await db.pool.connect();
    await undone.query("begin");
    await undone.query("select sluice.advance_cursors()");
    await undone.query("rollback");
    undone.release();
    expect(await lag()).toBe(before);
    await commit(holder);
    await db.run(advanceCursors());
    expect((await queue.claim()).map((job) => job.id)).toContain(holder.id);
  });

  test("give new seqs to the jobs of a transaction that they have passed, a bounded number at a time", async () => {
    await queue.enqueueOne();
    const holder = await openWithJob();
    await holder.client.query("select sluice.enqueue_many('echo', array_fill('{}'::jsonb, array[25]))");
    await holder.client.query("select sluice.enqueue('echo', delay_seconds => 0.001)");
    for (let round = 0; round < 3; round++) {
      await churn();
      await db.run(advanceCursors());
    }
    await commit(holder);
    expect(await queue.claim()).toEqual([]);
    const claimed: number[] = [];
    for (let round = 0; round < 4; round++) {
      await queue.query("select sluice.advance_cursors(10)");
      claimed.push((await queue.claim()).length);
    }
    expect(claimed).toEqual([11, 10, 6, 0]);
    expect(await queue.count("cursor_gap")).toBe(0);
  });

  test("do not move in a transaction that has written, and refuse one with a fixed snapshot", async () => {
    await churn();
    await db.run(advanceCursors());
    const before = await lag();
    await churn();
    const client = await db.pool.connect();
    await client.query("begin");
    await client.query("select sluice.enqueue('other')");
    await client.query("select sluice.advance_cursors()");
    await client.query("rollback");
    for (const level of ["repeatable read", "serializable"]) {
      await client.query(`begin isolation level ${level}`);
      await expect(client.query("select sluice.advance_cursors()")).rejects.toMatchObject({ code: "40001" });
      await client.query("rollback");
    }
    client.release();
    expect(await lag()).toBeGreaterThan(before);
  });

  test("move back on reset_cursors() after somebody changed rows by hand", async () => {
    await churn();
    await db.run(advanceCursors());
    await db.run(advanceCursors());
    const id = await queue.enqueueOne();
    await db.pool.query("update sluice.ready set seq = 1 where id = $1", [id]);
    expect(await queue.claim()).toEqual([]);
    await db.pool.query("select sluice.reset_cursors()");
    expect((await queue.claim()).map((job) => job.id)).toEqual([id]);
  });
});
