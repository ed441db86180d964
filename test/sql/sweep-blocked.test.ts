// sweep: it repairs jobs that wait for nothing, and the reap round says so. The engine makes none, so the tests lose events.
import { beforeEach, describe, expect, test } from "vitest";
import { foldFlows, prune, resolveQueues, sweepBlocked } from "../../src/core/sql/index.ts";
import { reap } from "../../src/queue/reap.ts";
import { differences } from "../support/balance.ts";
import { measure } from "../support/explain.ts";
import { flowJobsOf, named } from "../support/flow-jobs.ts";
import { createTestPorts } from "../support/ports.ts";
import { inSession } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const jobs = flowJobsOf(db.pool);
const queue = verbsOf(db);
const ports = createTestPorts(db, []);
beforeEach(() => emptyQueue(db.pool));

const sweep = () => db.run(sweepBlocked({ limit: 500 }));
const loseEvents = () => queue.query("delete from sluice.ready where returned is not null");
const doneBy = async (step: string) => (await reap(ports)).steps[step]?.did;

describe("a reap round", () => {
  test("releases jobs that wait for nothing, and reports each once", async () => {
    await jobs.flow({ ref: "a" }, { ref: "b", after: ["a"] }, { ref: "c", after: ["a"] });
    await jobs.complete(await jobs.claim());
    await loseEvents();
    expect(await jobs.claim()).toEqual([]);
    expect(await doneBy("stuck")).toEqual([2]);
    expect(await doneBy("stuck")).toEqual([0]);
    expect(await jobs.drain()).toBe("b c");
    expect(await differences(queue)).toEqual([]);
  });

  test("finds nothing to repair in flows that run", async () => {
    await jobs.flow({ ref: "a" }, { ref: "b", after: ["a"] }, { ref: "c", after: ["b"] });
    const held = await jobs.claim();
    expect(await doneBy("stuck")).toEqual([0]);
    await jobs.complete(held);
    expect(await doneBy("stuck")).toEqual([0]);
    expect(await jobs.drain()).toBe("b, c");
  });

  test("reads the events of a queue that nobody claims from", async () => {
    const { ids } = await jobs.flow({ ref: "a" }, { ref: "b", after: ["a"] });
    await jobs.cancel(ids.a);
    expect(await doneBy("resolved")).toEqual([1]);
    expect(await jobs.status(ids.b)).toBe("dead");
    expect(await db.run(resolveQueues())).toBe(0);
  });

  test("adds the changes of flows to their rows", async () => {
    const { flowId } = await jobs.flow({ ref: "a" }, { ref: "b", after: ["a"] });
    await jobs.drain();
    const before = await jobs.find(flowId);
    expect(await doneBy("flows")).not.toEqual([0]);
    expect(await queue.count("flow_ledger")).toBe(0);
    expect(await jobs.find(flowId)).toEqual(before);
    expect(await db.run(foldFlows({ limit: 1 }))).toBe(0);
  });
});

test("waits with many edges are swept a few in each call, and all of them in the end", async () => {
  const names = times(999, (n) => `a${n}`);
  for (let flow = 0; flow < 8; flow++)
    await jobs.flow(...names.map((ref) => ({ ref })), { ref: "sum", after: names });
  const held = [];
  for (let claim = 0; claim < 8; claim++) held.push(await jobs.claim({ limit: 999 }));
  for (const batch of held) await jobs.complete(batch);
  await loseEvents();
  expect([await sweep(), await sweep(), await sweep(), await sweep()]).toEqual([3, 3, 2, 0]);
  expect(await jobs.drain()).toBe(times(8, () => "sum").join(" "));
});

test("while the database is pinned a call steps over some waits that are over, and the walk comes to its end", async () => {
  const { ids } = await jobs.flow({ ref: "a" }, { ref: "b", after: ["a"] });
  const sweepAtOnce = "select sluice.sweep_blocked(500, 0)"; // one range of numbers in each call
  const told = async () =>
    Number(await jobs.value("select count(*) from sluice.ready where returned is not null"));
  await inSession(db.pool, (pin) =>
    inSession(db.pool, async (client) => {
      await client.query(sweepAtOnce);
      await pin.query("begin isolation level repeatable read");
      await pin.query("select count(*) from sluice.blocked");
      await queue.query(
        `insert into sluice.blocked (wait, id, lane, togo)
         select nextval('sluice.wait_number'), sluice.new_id(), 0, 0 from generate_series(1, 20000)`,
      );
      await queue.query("delete from sluice.blocked where lane = 0");
      await queue.query(
        "update sluice.blocked set wait = nextval('sluice.wait_number') where id = $1", // behind them, and without its edge
        [ids.b],
      );
      for (let call = 0; call < 100 && (await told()) === 0; call++)
        expect((await measure(client, sweepAtOnce)).buffers).toBeLessThan(700); // 532 on PostgreSQL 16
      expect(await told()).toBe(1);
      await pin.query("rollback");
    }),
  );
  expect(await jobs.drain()).toBe("a b");
});

describe("edges", () => {
  const edges = () => queue.count("edge");
  const waitForSignal = async (name: string) => {
    await jobs.add(name);
    const held = [named(await jobs.claim(), name)];
    await jobs.settle(held, { outcome: "suspend", signal: { name: "go", key: name } });
    return held[0]?.id;
  };

  test("of a wait that was cancelled are removed, and those of others stay", async () => {
    const ids = [await waitForSignal("a"), await waitForSignal("b")];
    await jobs.cancel(ids[0]);
    expect(await edges()).toBe(2);
    expect(await sweep()).toBe(0);
    expect(await edges()).toBe(1);
    await jobs.signal("go", "b");
    expect(await jobs.drain()).toBe("b");
  });

  test("of a cancel that is rolled back stay", async () => {
    const id = await waitForSignal("a");
    await inSession(db.pool, async (client) => {
      await client.query("begin");
      await flowJobsOf(client).cancel(id);
      await sweep();
      await client.query("rollback");
    });
    await jobs.signal("go", "a");
    expect(await jobs.drain()).toBe("a");
  });
});

describe("old flows", () => {
  /** Flows of 9 days ago, each with one job or with none. */
  const addOld = (flows: number, withJobs: boolean) =>
    queue.query(
      `with old as (
         insert into sluice.flow (id, last_id, total, completed)
         select id, (left(id::text, 35) || 'f')::uuid, 1, 1
         from (select format('%s-7%s-8000-000000000000', left(sluice.id_at(now() - interval '9 days')::text, 13), lpad(to_hex(n + $3), 3, '0'))::uuid as id
               from generate_series(1, $1::int) as n) as made
         returning id
       )
       insert into sluice.job (id, lane, max_attempts, payload)
       select (left(id::text, 35) || '1')::uuid, 1, 1, '{}' from old where $2`,
      [flows, withJobs, withJobs ? 0 : 1000],
    );

  test("are removed when their jobs were pruned, also behind many that have to stay", async () => {
    await jobs.add("lane");
    await addOld(10, true);
    await addOld(10, false);
    for (let call = 0; call < 8; call++) await db.run(prune({ limit: 3 }));
    expect(await queue.count("flow")).toBe(10);
    await queue.query("delete from sluice.job where id < sluice.id_at(now() - interval '1 day')");
    for (let call = 0; call < 8; call++) await db.run(prune({ limit: 3 }));
    expect(await queue.count("flow")).toBe(0);
  });
});
