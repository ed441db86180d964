// The registry of live workers: heartbeats, leaving, and what a heartbeat costs while the database is pinned.
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { liveWorkers, prune, recordRound, registerPuller, removeWorker } from "../../src/core/sql/index.ts";
import { holdSnapshot } from "../support/churn.ts";
import { measure, measureOften } from "../support/explain.ts";
import { inSession, sqlState, untilWaiting } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { only, secondsBetween, secondsFromNow, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const { query, count } = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const register = (id: string, ...queues: string[]) => db.run(registerPuller(id, queues));
const registerDrain = async (id: string, queue: string) =>
  only(
    await query<{ at: Date | null }>("select sluice.register_worker($1, array[$2], 'drain') as at", [
      id,
      queue,
    ]),
  ).at;
const live = async (queue?: string) =>
  (await db.run(liveWorkers(queue ? { queue } : {}))).map(({ id }) => id);
const find = async (id: string) => only((await db.run(liveWorkers())).filter((worker) => worker.id === id));
/** As if the worker's last heartbeat, and its start, had been some seconds earlier. */
const makeOlder = (id: string, seconds: number) =>
  query(
    `update sluice.worker set seen_at = seen_at - $2 * interval '1 s', started_at = started_at - $2 * interval '1 s'
     where worker_id = $1`,
    [id, seconds],
  );

describe("a heartbeat", () => {
  test("registers a worker for its queues, for 30 seconds", async () => {
    await register("w1", "orders", "mail");
    const worker = await find("w1");
    expect(worker).toMatchObject({ kind: "puller", queues: ["orders", "mail"] });
    expect(worker.startedAt).toEqual(worker.seenAt);
    expect(secondsBetween(worker.seenAt, worker.expiresAt)).toBe(30);
    expect(secondsFromNow(worker.expiresAt)).toBeGreaterThan(25);
  });

  test("answers with the live workers that share a queue, and with the worker itself", async () => {
    await register("w1", "orders");
    await register("w2", "mail");
    await registerDrain("d1", "orders");
    const { puller, workers } = await register("w3", "print", "orders");
    expect(puller).toEqual(await find("w3"));
    expect(workers.map(({ id }) => id)).toEqual(["d1", "w1", "w3"]);
    expect(await live("mail")).toEqual(["w2"]);
    expect(await live("none")).toEqual([]);
    expect(await live()).toEqual(["d1", "w1", "w2", "w3"]);
  });

  test.each([
    { kind: "puller", quietFor: 0.9, writesAfter: 1.1 },
    { kind: "drain", quietFor: 4.5, writesAfter: 5.1 },
  ])("of a $kind writes again after $writesAfter s", async ({ kind, quietFor, writesAfter }) => {
    const beat = () => (kind === "drain" ? registerDrain("w1", "orders") : register("w1", "orders"));
    await beat();
    await query("update sluice.worker set seen_at = now() - $1 * interval '1 s'", [quietFor - 0.2]);
    const { seenAt } = await find("w1");
    await beat();
    expect((await find("w1")).seenAt).toEqual(seenAt);
    await query("update sluice.worker set seen_at = now() - $1 * interval '1 s'", [writesAfter]);
    await beat();
    expect(secondsFromNow((await find("w1")).seenAt)).toBeGreaterThan(-0.9);
    expect(await count("worker")).toBe(1);
  });

  test("keeps the time of the start, and changes the queues at once", async () => {
    await register("w1", "orders");
    await makeOlder("w1", 20);
    const { startedAt } = await find("w1");
    await register("w1", "orders");
    expect((await find("w1")).startedAt).toEqual(startedAt);
    await register("w1", "mail");
    expect(await find("w1")).toMatchObject({ startedAt, queues: ["mail"] });
    expect(await live("orders")).toEqual([]);
  });

  test("waits for another one of the same worker that has not committed, and so does a leave", async () => {
    await inSession(db.pool, async (client) => {
      const beat = "select sluice.register_worker('w1', '{orders}', 'puller')";
      await client.query("begin");
      await client.query(beat);
      const second = query(beat);
      await untilWaiting(db.pool, 1);
      await client.query("commit");
      await second;
      expect(await count("worker")).toBe(1);

      await client.query("begin");
      await client.query(beat);
      const leave = db.run(removeWorker("w1"));
      await untilWaiting(db.pool, 1);
      await register("w2", "orders");
      await client.query("commit");
      expect(await leave).toBe(true);
      expect(await live()).toEqual(["w2"]);
    });
  });

  test("of 20 connections at once makes one row of a worker", async () => {
    await Promise.all(times(20, () => register("w1", "orders")));
    expect(await count("worker")).toBe(1);
    await makeOlder("w1", 20);
    await Promise.all(times(20, (n) => (n % 2 ? register("w1", "orders") : registerDrain("w1", "orders"))));
    expect(await count("worker")).toBe(1);
  });

  test("of 50 workers at once registers all of them", async () => {
    const answers = await Promise.all(times(50, (n) => register(`w${n}`, "orders")));
    expect(await live("orders")).toHaveLength(50);
    for (const [n, { puller }] of answers.entries()) expect(puller.id).toBe(`w${n}`);
  });

  test.each([
    ["an empty id", "", ["q"], "worker_id: must have 1 to 255 characters"],
    ["a long id", "x".repeat(256), ["q"], "worker_id: must have 1 to 255 characters"],
    ["no queue", "w", [], "queues: must be a flat list of 1 to 100 names"],
    ["101 queues", "w", times(101, (n) => `q${n}`), "queues: must be a flat list of 1 to 100 names"],
    ["a bad name", "w", ["q", "No Queue"], /^queues: lower case letters/],
  ])("with %s is refused", async (_, id, queues, message) => {
    const refused = query("select sluice.register_puller($1, $2)", [id, queues]);
    await expect(refused).rejects.toMatchObject({ code: "22023", message: expect.stringMatching(message) });
    expect(await count("worker")).toBe(0);
  });

  test("with the longest id and 100 queues is accepted", async () => {
    const id = "ü".repeat(255);
    await register(id, ...times(100, (n) => `q${n}`));
    expect(await live("q99")).toEqual([id]);
  });
});

describe("a worker", () => {
  test("is gone 30 seconds after its last heartbeat, and starts anew when it comes back", async () => {
    await register("w1", "orders");
    await register("w2", "orders");
    await makeOlder("w1", 29);
    expect(await live("orders")).toEqual(["w1", "w2"]);
    await makeOlder("w1", 1.5);
    expect(await live("orders")).toEqual(["w2"]);
    await register("w1", "orders");
    expect(await live("orders")).toEqual(["w1", "w2"]);
    expect(secondsFromNow((await find("w1")).startedAt)).toBeGreaterThan(-25);
  });

  test("that leaves is gone at once, and may leave twice", async () => {
    await register("w1", "orders");
    expect(await db.run(removeWorker("w1"))).toBe(true);
    expect(await live()).toEqual([]);
    expect(await db.run(removeWorker("w1"))).toBe(false);
    expect(await db.run(removeWorker("nobody"))).toBe(false);
  });

  test("whose heartbeat lies ahead of the clock counts again after its next heartbeat", async () => {
    await register("w1", "orders");
    await makeOlder("w1", -3600);
    expect(await live()).toEqual([]);
    await register("w1", "orders");
    expect(await live()).toEqual(["w1"]);
    expect(await count("worker")).toBe(1);
    expect(secondsFromNow((await find("w1")).startedAt)).toBeLessThan(1);
  });
});

describe("the number of live workers", () => {
  const fill = (rows: number) =>
    query(
      `insert into sluice.worker select 'w' || n, 'puller', '{orders}', now(), now() from generate_series(1, $1::int) as n`,
      [rows],
    );

  test("is at most 1,000: another puller is refused, and a drain works unregistered", async () => {
    await fill(1000);
    expect(await sqlState(register("another", "orders"))).toBe("SL429");
    expect(await registerDrain("drain", "orders")).toBeNull();
    expect(await count("worker")).toBe(1000);
  });

  test("does not stop the heartbeat of a worker that is registered", async () => {
    await fill(1000);
    await makeOlder("w7", 20);
    await register("w7", "orders");
    expect(secondsFromNow((await find("w7")).seenAt)).toBeGreaterThan(-15);
  });

  test("has room again when workers are gone", async () => {
    await fill(1000);
    await makeOlder("w7", 31);
    await register("another", "orders");
    expect(await live()).toContain("another");
  });
});

describe("a reap round", () => {
  test("removes the rows of workers that are long gone, and of no other", async () => {
    for (const id of ["live", "gone", "long-gone", "ahead"]) await register(id, "orders");
    await makeOlder("gone", 40);
    await makeOlder("long-gone", 7200);
    await makeOlder("ahead", -7200);
    await db.run(prune({ limit: 100 }));
    expect(await query("select worker_id from sluice.worker order by 1")).toEqual([
      { worker_id: "gone" },
      { worker_id: "live" },
    ]);
  });

  test("starts an hour before the round before it", async () => {
    for (const id of ["old", "recent"]) await register(id, "orders");
    await makeOlder("old", 7200);
    await makeOlder("recent", 1800);
    await db.run(recordRound({ kind: "reap", ms: 0, report: {} }));
    await db.run(prune({ limit: 100 }));
    expect(await query("select worker_id from sluice.worker")).toEqual([{ worker_id: "old" }]);
  });
});

describe("after 10,000 heartbeats in a pinned database", () => {
  const client = new pg.Client({ connectionString: db.url });
  let release: () => Promise<void>;
  beforeAll(async () => {
    await client.connect();
    release = await holdSnapshot(db.url);
  });
  afterAll(async () => {
    await release();
    await client.end();
  });
  /** Each heartbeat is a transaction of its own, so the old snapshot keeps the row that it deletes. */
  beforeEach(() =>
    client.query(`
      do $$
      begin
        for beat in reverse 2499 .. 0 loop
          delete from sluice.worker where seen_at > now() - (beat + 2) * interval '10 s';
          insert into sluice.worker
          select 'w' || n, 'puller', '{orders}', now() - interval '7 hours', now() - beat * interval '10 s'
          from generate_series(1, 4) as n;
          commit;
        end loop;
      end $$`),
  );

  /** The last call leaves the workers as the first one found them. */
  const calls = {
    "a heartbeat that writes": "select sluice.register_worker('w1', '{orders,mail}', 'puller')",
    "a heartbeat that reads": "select sluice.register_worker('w1', '{orders,mail}', 'puller')",
    "a change of the queues": "select sluice.register_worker('w1', '{orders}', 'puller')",
    "the list": "select * from sluice.live_workers('orders')",
    leaving: "select sluice.remove_worker('w2')",
    "leaving twice": "select sluice.remove_worker('w2')",
    "a first heartbeat": "select sluice.register_worker('w2', '{orders}', 'puller')",
  };

  test("registering, leaving and listing read a few pages, and pruning reads those of an hour", async () => {
    await client.query("vacuum sluice.worker");
    const size = only(await query<{ bytes: string }>("select pg_relation_size('sluice.worker') as bytes"));
    expect(Number(size.bytes)).toBeGreaterThan(10_000 * 60);
    const costs: Record<string, number> = {};
    for (
      let round = 0;
      round < 8;
      round++ // Postgres keeps the plans of the last ones
    )
      for (const [name, text] of Object.entries(calls)) costs[name] = (await measure(client, text)).buffers;
    for (const [name, buffers] of Object.entries(costs)) expect(buffers, name).toBeLessThanOrEqual(40);

    await db.run(recordRound({ kind: "reap", ms: 0, report: {} }));
    const { buffers } = await measureOften(3, () => measure(client, "select sluice.prune_workers(100)"));
    expect(buffers).toBeLessThanOrEqual(50); // without that limit 135, and more with every heartbeat
  });
});
