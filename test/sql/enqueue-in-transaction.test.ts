// SQL clients enqueue in their own transaction, and handlers complete a job in theirs: both happen, or neither does.
import type pg from "pg";
import { beforeEach, describe, expect, test } from "vitest";
import { advanceCursors, books } from "../../src/core/sql/index.ts";
import { inSession, until } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { only, secondsFromNow, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

async function enqueueWith(client: pg.ClientBase, call: string): Promise<string> {
  const { rows } = await client.query<{ id: string }>(`select sluice.${call} as id`);
  return only(rows).id;
}

describe("in the caller's transaction", () => {
  test("enqueue() with named options makes a job with these fields", async () => {
    const id = await inSession(db.pool, (client) =>
      enqueueWith(
        client,
        `enqueue('mail', '{"to": "a"}', queue => 'heavy', priority => 9, max_attempts => 2, delay_seconds => 60,
          idempotency_key => 'k', partition_key => 'p', traceparent => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tags => '{x,y}')`,
      ),
    );
    const job = await queue.find(id);
    expect(job).toMatchObject({
      ...{ type: "mail", queue: "heavy", priority: 9, maxAttempts: 2, payload: { to: "a" } },
      ...{
        idempotencyKey: "k",
        partitionKey: "p",
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        tags: ["x", "y"],
      },
    });
    expect(secondsFromNow(job.scheduledAt)).toBeGreaterThan(50);
  });

  test("a null payload is stored as an empty one, by enqueue() and enqueue_many()", async () => {
    await queue.query("select sluice.enqueue('echo', null)");
    for (const options of ["", ", tags => '{x}'"])
      await queue.query(`select sluice.enqueue_many('echo', array[null, '{"n": 1}']::jsonb[]${options})`);
    const payloads = (await queue.claim()).map((job) => job.payload);
    expect(payloads).toEqual([{}, {}, { n: 1 }, {}, { n: 1 }]);
  });

  test("enqueue_many() with no payloads makes no jobs", async () => {
    for (const payloads of ["'{}'", "null"])
      expect(await queue.query(`select sluice.enqueue_many('echo', ${payloads})`)).toEqual([]);
    expect(await queue.count("ledger")).toBe(0);
  });

  test("a job cannot be claimed before the commit, and can after it", async () => {
    await inSession(db.pool, async (client) => {
      await client.query("begin");
      const id = await enqueueWith(client, "enqueue('echo')");
      expect(await queue.claim()).toEqual([]);
      await client.query("commit");
      expect(await queue.claim()).toMatchObject([{ id, type: "echo", payload: {} }]);
    });
  });

  test("a job that is rolled back never existed, also in the books", async () => {
    await inSession(db.pool, async (client) => {
      await client.query("begin");
      await enqueueWith(client, "enqueue('echo', idempotency_key => 'k', tags => '{x}')");
      await enqueueWith(client, "enqueue('echo', delay_seconds => 60)");
      await client.query("select sluice.enqueue_many('echo', array['{}', '{}']::jsonb[])");
      await client.query("rollback");
    });
    const tables = ["job", "ready", "scheduled", "lane", "ledger", "idempotency", "expiry", "job_tag"];
    for (const table of tables) expect([table, await queue.count(table)]).toEqual([table, 0]);
    expect(await db.run(books())).toEqual([]);
  });

  test("jobs after a savepoint that is rolled back are gone, and the others stay", async () => {
    await inSession(db.pool, async (client) => {
      await client.query("begin");
      const id = await enqueueWith(client, "enqueue('echo')");
      await client.query("savepoint before");
      await enqueueWith(client, "enqueue('echo')");
      await client.query("rollback to before");
      await client.query("commit");
      expect(await queue.claim()).toMatchObject([{ id }]);
    });
    expect(await db.run(books())).toMatchObject([{ enqueued: 1, leased: 1 }]);
  });

  test("100,000 rows of a table become jobs in one statement", { timeout: 60_000 }, async () => {
    await inSession(db.pool, async (client) => {
      await client.query(
        "create temporary table person as select n as id from generate_series(1, 100000) as n",
      );
      const startedMs = performance.now();
      const { rows } = await client.query(`
        select count(*)::int as count, count(distinct id)::int as apart
        from sluice.enqueue_many('index', array(select jsonb_build_object('person', id) from person order by id),
                                 priority => 1, tags => '{reindex}') as id`);
      console.log(`enqueue_many of 100,000 rows: ${Math.round(performance.now() - startedMs)} ms`);
      expect(rows).toEqual([{ count: 100_000, apart: 100_000 }]);
    });
    expect(await db.run(books())).toMatchObject([{ type: "index", priority: 1, enqueued: 100_000 }]);
    const first = await queue.claim({ types: ["index"], limit: 3 });
    expect(first.map((job) => job.payload)).toEqual([{ person: 1 }, { person: 2 }, { person: 3 }]);
  });

  test("two transactions that use a new type concurrently do not wait for each other", async () => {
    await inSession(db.pool, (first) =>
      inSession(db.pool, async (second) => {
        const ids: string[] = [];
        for (const client of [first, second]) {
          await client.query("set lock_timeout to '1s'");
          await client.query("begin");
          ids.push(await enqueueWith(client, "enqueue('echo')"));
        }
        await second.query("commit");
        await first.query("commit");
        expect((await queue.claim()).map((job) => job.id)).toEqual(ids);
      }),
    );
    await queue.enqueueOne();
    expect(await queue.count("lane")).toBe(2);
    expect(await db.run(books())).toMatchObject([{ enqueued: 3, leased: 2, pending: 1 }]);
  });
});

describe("a transaction that stays open while others commit", () => {
  async function churn() {
    await queue.enqueue(...times(50, () => ({})));
    expect(await queue.claim()).toHaveLength(50);
    for (let tick = 0; tick < 5; tick++) await db.run(advanceCursors());
  }

  test("has its job claimed after the commit, although a cursor has passed the job", async () => {
    await churn();
    await inSession(db.pool, async (late) => {
      await late.query("begin");
      const id = await enqueueWith(late, "enqueue('echo')");
      const { rows } = await late.query("select seq from sluice.ready where id = $1", [id]);
      await churn();
      await churn();
      const passed = await queue.query(
        "select cursor_seqs[lane] > $1::bigint as passed from sluice.lane cross join sluice.cursors",
        [rows[0].seq],
      );
      expect(passed).toEqual([{ passed: true }]);
      await late.query("commit");
      for (let tick = 0; tick < 3; tick++) await db.run(advanceCursors());
      expect(await queue.claim()).toMatchObject([{ id }]);
    });
  });

  test("has its delayed job claimed too", async () => {
    await churn();
    await inSession(db.pool, async (late) => {
      await late.query("begin");
      const id = await enqueueWith(late, "enqueue('echo', delay_seconds => 0.001)");
      const { rows } = await late.query("select run_at::text as due from sluice.scheduled");
      await until(db.pool, `select clock_timestamp() > '${rows[0].due}' as reached`);
      await churn();
      await churn();
      const passed = await queue.query(
        "select scheduled_cursor > $1::timestamptz as passed from sluice.cursors",
        [rows[0].due],
      );
      expect(passed).toEqual([{ passed: true }]);
      await late.query("commit");
      for (let tick = 0; tick < 3; tick++) await db.run(advanceCursors());
      expect(await queue.claim()).toMatchObject([{ id }]);
    });
  });

  test("leaves nothing behind when it is rolled back", async () => {
    await inSession(db.pool, async (late) => {
      await late.query("begin");
      await enqueueWith(late, "enqueue('echo')");
      await churn();
      await churn();
      await late.query("rollback");
    });
    await churn();
    expect(await queue.count("cursor_gap")).toBe(0);
    expect(await queue.claim()).toEqual([]);
  });
});

describe("complete() in the handler's transaction", () => {
  async function completeInTransaction(end: "commit" | "rollback", keyOf = (leaseKey: string) => leaseKey) {
    await queue.query("drop table if exists effect; create table effect (job uuid)");
    await queue.enqueueOne();
    const job = await queue.claimOne();
    const applied = await inSession(db.pool, async (client) => {
      await client.query("begin");
      await client.query("insert into effect values ($1)", [job.id]);
      const { rows } = await client.query("select sluice.complete($1, $2, $3) as applied", [
        ...[job.id, keyOf(job.leaseKey), JSON.stringify({ done: [1] })],
      ]);
      await client.query(end);
      return only(rows).applied as boolean;
    });
    const { length: effects } = await queue.query("select from effect");
    return { applied, effects, job: await queue.find(job.id) };
  }

  test("applies both the effect and the completion on commit", async () => {
    expect(await completeInTransaction("commit")).toMatchObject({
      applied: true,
      effects: 1,
      job: { status: "completed", output: { done: [1] } },
    });
  });

  test("applies neither on rollback", async () => {
    const result = await completeInTransaction("rollback");
    expect(result).toMatchObject({ applied: true, effects: 0, job: { status: "processing", output: null } });
    expect(await db.run(books())).toMatchObject([{ leased: 1, completed: 0 }]);
  });

  test("completes nothing for a key with only the right generation", async () => {
    const guess = (leaseKey: string) => `${leaseKey.slice(0, 18)}-8000-000000000000`;
    expect(await completeInTransaction("rollback", guess)).toMatchObject({
      applied: false,
      effects: 0,
      job: { status: "processing" },
    });
  });
});
