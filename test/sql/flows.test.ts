// Jobs that wait for the end of others: who is released when, and that every way into an end is heard of.
import { beforeEach, describe, expect, test } from "vitest";
import { differences } from "../support/balance.ts";
import { bury, complete, flowJobsOf, named, names } from "../support/flow-jobs.ts";
import { makeOlder } from "../support/old-jobs.ts";
import { inSession, sqlState } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const jobs = flowJobsOf(db.pool);
const verbs = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const sweep = () => jobs.value<number>("select sluice.sweep_blocked()");

describe("a flow", () => {
  test("starts a job when all that it waits for have completed, with their outputs", async () => {
    const { ids, jobs: made } = await jobs.flow(
      { ref: "sum", after: { parts: ["a", "b"], other: ["c"] } },
      { ref: "a" },
      { ref: "b" },
      { ref: "c" },
    );
    expect(made.map(({ ref, status }) => `${ref} ${status}`)).toEqual([
      "sum blocked",
      "a pending",
      "b pending",
      "c pending",
    ]);
    const held = await jobs.claim();
    expect(names(held)).toBe("a b c");
    await jobs.settle([named(held, "a"), named(held, "b")], { outcome: "complete", output: { n: 1 } });
    expect(await jobs.claim()).toEqual([]);
    await jobs.settle([named(held, "c")]);
    const [sum] = await jobs.claim();
    expect(sum?.blockers).toEqual({
      parts: [
        { job_id: ids.a, status: "completed", output: { n: 1 } },
        { job_id: ids.b, status: "completed", output: { n: 1 } },
      ],
      other: [{ job_id: ids.c, status: "completed", output: null }],
    });
    expect(await differences(verbs)).toEqual([]);
  });

  test("runs layer after layer, the next one in the same claim that settles the last", async () => {
    await jobs.flow(
      ...times(3, (n) => ({ ref: `a${n}` })),
      ...times(3, (n) => ({ ref: `b${n}`, after: ["a0", "a1", "a2"] })),
      { ref: "c", after: ["b0", "b1", "b2"] },
    );
    expect(await jobs.drain()).toBe("a0 a1 a2, b0 b1 b2, c");
    await jobs.flow({ ref: "d" }, { ref: "e", after: ["d"] });
    const [first] = await jobs.claim();
    const answer = await jobs.value<{ leases: unknown[] }>(
      "select sluice.claim('default', '{echo}', 10, 60, p_settle_ids => $1, p_settle_keys => $2)",
      [[first?.id], [first?.key]],
    );
    expect(answer.leases).toHaveLength(1);
  });

  test("is counted in one row", async () => {
    const { flowId, ids } = await jobs.flow(
      { ref: "a" },
      { ref: "b" },
      { ref: "c" },
      { ref: "d", after: ["a"] },
    );
    const none = { blocked: 0, pending: 0, processing: 0, completed: 0, dead: 0, cancelled: 0, discarded: 0 };
    const counts = async () => (await jobs.find(flowId)).counts;
    expect(await counts()).toEqual({ ...none, blocked: 1, pending: 3 });
    const held = await jobs.claim({ limit: 2 });
    expect(await counts()).toEqual({ ...none, blocked: 1, pending: 1, processing: 2 });
    await jobs.settle([named(held, "a"), named(held, "b")], [bury, { outcome: "retry", seconds: 0 }]);
    await jobs.claim({ limit: 1 });
    expect(await counts()).toEqual({ ...none, pending: 1, processing: 1, dead: 2 });
    await jobs.discard(ids.a);
    await jobs.cancel(ids.b);
    await jobs.value("select sluice.fold_flows(1000)");
    expect(await counts()).toEqual({ ...none, processing: 1, dead: 1, discarded: 1, cancelled: 1 });
    expect(await verbs.count("flow_ledger")).toBe(0);
    expect((await jobs.find(flowId)).status).toBe("running");
  });

  const refused: [string, Parameters<typeof jobs.flow>, string][] = [
    ["an unknown ref", [{ ref: "a", after: ["x"] }], 'no job of the flow has the ref "x"'],
    ["a ref twice", [{ ref: "a" }, { ref: "a" }], '"a" is used twice'],
    [
      "a cycle",
      [
        { ref: "a", after: ["c"] },
        { ref: "b", after: ["a"] },
        { ref: "c", after: ["b"] },
        { ref: "d", after: ["c"] },
      ],
      "wait for each other: a, c, b, a",
    ],
    ["a job that waits for itself", [{ ref: "a", after: ["a"] }], "wait for each other: a, a"],
    ["a job without a ref", [{ ref: undefined as unknown as string }], "needs one"],
    ["what is no list", [{ ref: "a", after: "b" as unknown as [] }], "must be a list"],
  ];
  test.each(refused)("with %s is refused as a whole", async (_, requests, message) => {
    await expect(jobs.flow({ ref: "first" }, ...requests)).rejects.toThrow(message);
    await expect(jobs.flow({ ref: "first" }, ...requests)).rejects.toMatchObject({ code: "22023" });
    expect(await verbs.count("job")).toBe(0);
  });

  test("may name its jobs in any order, and wait for jobs outside", async () => {
    const outside = await jobs.add("outside");
    await jobs.flow({ ref: "b", after: ["a", { job_id: outside }] }, { ref: "a" });
    const held = await jobs.claim();
    expect(names(held)).toBe("a outside");
    await jobs.settle([named(held, "a")]);
    expect(await jobs.claim()).toEqual([]);
    await jobs.settle([named(held, "outside")]);
    expect(names(await jobs.claim())).toBe("b");
  });

  test("takes the job that has an idempotency key already, which does not belong to the flow", async () => {
    const first = await jobs.add("first", { idempotency_key: "k" });
    const { ids, flowId } = await jobs.flow(
      { ref: "a", payload: { name: "first" }, idempotency_key: "k" },
      { ref: "b", after: ["a"] },
    );
    expect(ids.a).toBe(first);
    expect((await jobs.find(flowId)).total).toBe(1);
    expect(await jobs.drain()).toBe("first, b");
  });
});

describe("a blocker that was there before", () => {
  const waitFor = (id: string | undefined, options = {}) => jobs.add("after", { after: [id], ...options });

  test("may be pending, delayed, waiting for its key, blocked or running", async () => {
    const pending = await jobs.add("pending");
    const delayed = await jobs.add("delayed", { delay_seconds: 60 });
    await jobs.add("key 1", { partition_key: "k" });
    const waiting = await jobs.add("waiting", { partition_key: "k" });
    const blocked = await jobs.add("blocked", { after: [pending] });
    const running = await jobs.add("running", { queue: "other" });
    const [held] = await jobs.claim({ queue: "other" });
    const after = await jobs.add("after", { after: [pending, delayed, waiting, blocked, running] });
    expect(await jobs.waitingFor(after)).toMatchObject({ kind: "jobs", count: 5 });
    await jobs.claim({ limit: 0 });
    expect(await jobs.drain()).toBe("key 1 pending, blocked waiting");
    await jobs.complete(held ? [held] : []);
    expect(await jobs.drain()).toBe("");
    await jobs.makeDue();
    expect(await jobs.drain()).toBe("delayed, after");
  });

  test("may have completed, in history or pruned from it", async () => {
    const done = await jobs.add("done");
    await jobs.drain();
    const old = await jobs.add("old");
    await jobs.drain();
    const pruned = await makeOlder(verbs, old, 9);
    await jobs.value("select sluice.prune(100)");
    expect(await verbs.query("select from sluice.job where id = $1", [pruned])).toEqual([]);
    await waitFor(done);
    await waitFor(pruned);
    expect(await jobs.drain()).toBe("after after");
  });

  test("is refused if no job ever had its id", async () => {
    const unknown = await jobs.value<string>("select sluice.new_id()");
    expect(await sqlState(waitFor(unknown))).toBe("22023");
    await expect(waitFor(unknown)).rejects.toThrow(`there is no job ${unknown}`);
    await expect(waitFor("x")).rejects.toThrow("is not the id of a job");
  });

  test.each(["dead", "cancelled", "discarded"])("that is %s kills its dependent", async (status) => {
    const id = status === "cancelled" ? await jobs.add("x") : await verbs.buryOne();
    if (status === "cancelled") await jobs.cancel(id);
    if (status === "discarded") await jobs.discard(id);
    const after = await waitFor(id);
    const runs = await waitFor(id, { on_blocker_dead: "run" });
    const [held] = await jobs.claim();
    expect(held?.blockers).toEqual({ jobs: [{ job_id: id, status, output: null }] });
    expect(held?.id).toBe(runs);
    const [found] = await verbs.query("select status, dead_reason, culprit from sluice.jobs where id = $1", [
      after,
    ]);
    expect(found).toEqual({ status: "dead", dead_reason: "blocker", culprit: id });
  });

  test("may be adopted while its worker completes it: the dependent starts once", async () => {
    const blocker = await jobs.add("blocker");
    const held = await jobs.claim();
    await waitFor(blocker);
    await inSession(db.pool, async (client) => {
      await client.query("begin");
      await flowJobsOf(client).complete(held); // sees no edge that was not judged, and holds the lease
      expect(await jobs.claim()).toEqual([]);
      await client.query("commit");
    });
    expect(await jobs.drain()).toBe("after");
    expect(await verbs.count("edge")).toBe(0);
  });

  test("may end between the enqueue of its dependent and the commit", async () => {
    const blocker = await jobs.add("blocker");
    const held = await jobs.claim();
    await inSession(db.pool, async (client) => {
      await client.query("begin");
      await flowJobsOf(client).add("after", { after: [blocker] });
      await jobs.complete(held);
      expect(await jobs.claim()).toEqual([]);
      await client.query("commit");
    });
    expect(await jobs.drain()).toBe("after");
  });

  test("of another queue wakes the queue of its dependent", async () => {
    const blocker = await jobs.add("blocker", { queue: "other" });
    await waitFor(blocker);
    await jobs.drain();
    await jobs.drain({ queue: "other" });
    expect(await jobs.drain()).toBe("after");
  });
});

test("Queuert's fan-in race: blockers that complete at once release their dependent once", async () => {
  const width = 8;
  for (let round = 0; round < 10; round++) {
    await jobs.flow(...times(width, (n) => ({ ref: `part${n}` })), {
      ref: "join",
      after: times(width, (n) => `part${n}`),
    });
    const held = await Promise.all(times(width, () => jobs.claim({ limit: 1 })));
    await Promise.all(held.map((one) => jobs.complete(one)));
    expect(await jobs.drain()).toBe("join");
  }
});

test("Queuert's fan-in race: the last two blockers are settled in transactions that do not see each other", async () => {
  await jobs.flow({ ref: "a" }, { ref: "b" }, { ref: "join", after: ["a", "b"] });
  const [a, b] = [await jobs.claim({ limit: 1 }), await jobs.claim({ limit: 1 })];
  await inSession(db.pool, (first) =>
    inSession(db.pool, async (second) => {
      await first.query("begin");
      await second.query("begin");
      await flowJobsOf(first).complete(a);
      await flowJobsOf(second).complete(b);
      await first.query("commit");
      expect(await jobs.claim()).toEqual([]);
      await second.query("commit");
    }),
  );
  expect(await jobs.drain()).toBe("join");
});

describe("BullMQ's hanging parent: a child that ends in any way ends its parent's wait", () => {
  const ways: Record<string, (child: string) => Promise<unknown>> = {
    "it is buried": async () => jobs.settle(await jobs.claim(), bury),
    "its attempts are used up": async () => jobs.settle(await jobs.claim(), { outcome: "retry", seconds: 0 }),
    "its lease runs out for the last time": async () => {
      await jobs.claim({ seconds: -1 });
      await jobs.value("select sluice.reap_leases(10)");
    },
    "it is cancelled": (child) => jobs.cancel(child),
    "it expires before its claim": async (child) => {
      await expire(child);
      expect(await jobs.claim()).toEqual([]);
    },
    "the reaper finds it expired": async (child) => {
      await expire(child);
      await jobs.value("select sluice.reap_expired(10)");
    },
    "its flow is cancelled": async () =>
      jobs.value("select sluice.cancel_flow('ann', id) from sluice.flow order by id limit 1"),
  };
  const expire = async (id: string) => {
    await verbs.query("update sluice.job set expires_at = now() where id = $1", [id]);
    await verbs.query("insert into sluice.expiry (expires_at, id) values (now(), $1)", [id]);
  };

  test.each(Object.keys(ways))("%s", async (way) => {
    const { ids: children } = await jobs.flow({ ref: "child", max_attempts: 1 });
    const { ids } = await jobs.flow(
      { ref: "dies", after: [{ job_id: children.child }] },
      { ref: "runs", after: [{ job_id: children.child }], on_blocker_dead: "run" },
      { ref: "grandparent", after: ["dies"] },
    );
    await jobs.claim({ types: ["none"] });
    await ways[way]?.(String(children.child));
    expect(names(await jobs.claim())).toBe("runs");
    expect(await jobs.status(ids.dies)).toBe("dead");
    expect(await jobs.status(ids.grandparent)).toBe("dead");
    expect(await verbs.count("blocked")).toBe(0);
    expect(await sweep()).toBe(0);
    expect(await differences(verbs)).toEqual([]);
  });

  test("it has a partition key and expires before its turn", async () => {
    const child = await jobs.add("child", { partition_key: "k" });
    const parent = await jobs.add("parent", { after: [child] });
    await jobs.claim({ types: ["none"] });
    await expire(child);
    await jobs.claim();
    await jobs.claim();
    expect([await jobs.status(child), await jobs.status(parent)]).toEqual(["dead", "dead"]);
  });

  test("and a parent that is blocked may be cancelled or expire itself", async () => {
    const { ids } = await jobs.flow(
      { ref: "a" },
      { ref: "b", after: ["a"] },
      { ref: "c", after: ["b"] },
      { ref: "d", after: ["c"] },
    );
    await jobs.cancel(ids.b);
    await jobs.claim({ types: ["none"] });
    expect(await jobs.status(ids.c)).toBe("dead");
    expect(await jobs.status(ids.d)).toBe("dead");
    const { ids: others } = await jobs.flow(
      { ref: "e" },
      { ref: "f", after: ["e"] },
      { ref: "g", after: ["f"] },
    );
    await expire(String(others.f));
    expect(await jobs.value("select sluice.reap_expired(10)")).toBe(1);
    await jobs.claim({ types: ["none"] });
    expect(await jobs.status(others.g)).toBe("dead");
    expect(await differences(verbs)).toEqual([]);
  });
});

describe("a replay", () => {
  test("of the culprit brings back all that died of it, level by level", async () => {
    const { ids, flowId } = await jobs.flow(
      { ref: "a" },
      { ref: "b", after: ["a"] },
      { ref: "c", after: ["b"] },
      { ref: "other" },
      { ref: "d", after: ["c", "other"] },
    );
    const held = await jobs.claim();
    await jobs.settle([named(held, "a")], bury);
    await jobs.claim();
    expect((await jobs.find(flowId)).counts).toMatchObject({ dead: 4, processing: 1 });
    await jobs.replay(ids.a);
    expect(names(await jobs.claim({ limit: 1 }))).toBe("a");
    expect((await jobs.find(flowId)).counts).toMatchObject({ dead: 0, blocked: 3, processing: 2 });
    expect(await differences(verbs)).toEqual([]);
  });

  test("of a job that expired while it waited lets it wait again", async () => {
    const { ids } = await jobs.flow({ ref: "a" }, { ref: "b", after: ["a"] });
    await verbs.query("update sluice.job set expires_at = now() where id = $1", [ids.b]);
    await verbs.query("insert into sluice.expiry (expires_at, id) values (now(), $1)", [ids.b]);
    await jobs.value("select sluice.reap_expired(10)");
    expect(await jobs.status(ids.b)).toBe("dead");
    await jobs.replay(ids.b);
    expect(await jobs.status(ids.b)).toBe("blocked");
    expect(await jobs.drain()).toBe("a, b");
    expect(await differences(verbs)).toEqual([]);
  });

  test("of the culprit before its death was heard of kills nobody", async () => {
    const { ids } = await jobs.flow({ ref: "a" }, { ref: "b", after: ["a"] });
    await jobs.settle(await jobs.claim(), bury);
    await jobs.replay(ids.a);
    expect(await jobs.drain()).toBe("a, b");
  });

  test("of a victim whose culprit is still dead lets it die again", async () => {
    const { ids } = await jobs.flow({ ref: "a" }, { ref: "b", after: ["a"] });
    await jobs.settle(await jobs.claim(), bury);
    await jobs.claim();
    await jobs.replay(ids.b);
    expect(await jobs.status(ids.b)).toBe("blocked");
    await jobs.claim();
    expect(await jobs.status(ids.b)).toBe("dead");
  });

  test("does not come: a discard of the culprit leaves its victims dead", async () => {
    const { ids } = await jobs.flow({ ref: "a" }, { ref: "b", after: ["a"] });
    await jobs.settle(await jobs.claim(), bury);
    await jobs.claim();
    await jobs.discard(ids.a);
    expect(await jobs.drain()).toBe("");
    expect(await jobs.status(ids.b)).toBe("dead");
  });
});

test("a released job waits for its time and for its key", async () => {
  await jobs.flow(
    { ref: "a" },
    { ref: "later", after: ["a"], delay_seconds: 60 },
    { ref: "k2", after: ["a"], partition_key: "k" },
    { ref: "k1", partition_key: "k" },
  );
  const first = await jobs.claim();
  expect(names(first)).toBe("a k1");
  await jobs.complete([named(first, "a")]);
  expect(await jobs.drain()).toBe("");
  await jobs.complete([named(first, "k1")]);
  expect(await jobs.drain()).toBe("k2");
  await jobs.makeDue();
  expect(await jobs.drain()).toBe("later");
  expect(await differences(verbs)).toEqual([]);
});

test("a slot without jobs holds nobody up", async () => {
  const id = await jobs.add("a", { after: { parts: [] } });
  const [held] = await jobs.claim();
  expect(held).toMatchObject({ id, blockers: { parts: [] } });
});

test("a job with more than 1,000 blockers asks for them in parts", async () => {
  const ids = await jobs.value<string[]>(
    `select array(select sluice.enqueue_many('echo', array_fill('{"name": "part"}'::jsonb, array[1200])))`,
  );
  const after = await jobs.add("after", { after: { parts: ids } });
  for (
    let held = await jobs.claim({ limit: 500 });
    held.length > 0;
    held = await jobs.claim({ limit: 500 })
  ) {
    if (held.some(({ id }) => id === after)) expect(held.at(-1)?.blockers).toEqual({ too_large: true });
    await jobs.complete(held);
  }
  const part = await jobs.value<{ parts: unknown[] }>("select sluice.blockers_of($1, 1000)", [after]);
  expect(part.parts).toHaveLength(200);
});

test("a resolve completes a pending, delayed or blocked job, and what waits for it starts", async () => {
  const { ids, flowId } = await jobs.flow(
    { ref: "a", type: "approval" },
    { ref: "b", type: "approval", delay_seconds: 60 },
    { ref: "c", type: "approval", after: ["a", "b"] },
    { ref: "d", after: ["c"] },
  );
  expect(await jobs.resolve(ids.c, { ok: true })).toBe(true);
  const [d] = await jobs.claim();
  expect(d?.blockers).toEqual({ jobs: [{ job_id: ids.c, status: "completed", output: { ok: true } }] });
  expect([await jobs.resolve(ids.a), await jobs.resolve(ids.b), await jobs.resolve(ids.d)]).toEqual([
    true,
    true,
    false,
  ]);
  expect((await jobs.find(flowId)).counts).toMatchObject({
    completed: 3,
    processing: 1,
    blocked: 0,
    pending: 0,
  });
  expect(await differences(verbs)).toEqual([]);
});

test("a handler that completes its job in its own transaction releases what waits for it", async () => {
  await jobs.flow({ ref: "a" }, { ref: "b", after: ["a"] });
  const [a] = await jobs.claim();
  await jobs.value("select sluice.complete($1, $2)", [a?.id, a?.key]);
  expect(await jobs.drain()).toBe("b");
});

test("the sweep finds a job whose event was lost, and has it released", async () => {
  await jobs.flow({ ref: "a" }, { ref: "b" }, { ref: "c", after: ["a"] }, { ref: "d", after: ["b"] });
  const held = await jobs.claim();
  expect(await sweep()).toBe(0);
  await jobs.complete([named(held, "a")]);
  expect(await sweep()).toBe(0); // the event is on its way
  await verbs.query("delete from sluice.ready where returned is not null");
  expect(await sweep()).toBe(1);
  expect(await sweep()).toBe(0);
  expect(await jobs.drain()).toBe("c");
});

test("the reaper reads the events of a queue that nobody claims from", async () => {
  const { ids } = await jobs.flow({ ref: "a" }, { ref: "b", after: ["a"] });
  await jobs.cancel(ids.a);
  await jobs.value("select sluice.resolve_queues()");
  expect(await jobs.status(ids.b)).toBe("dead");
});

test("while another transaction holds a waiting job, its events come again", async () => {
  const { ids } = await jobs.flow({ ref: "a" }, { ref: "b", after: ["a"] });
  await inSession(db.pool, async (client) => {
    await client.query("begin");
    await flowJobsOf(client).cancel(ids.b);
    expect(await jobs.drain()).toBe("a");
    await client.query("rollback");
  });
  expect(await jobs.drain()).toBe("b");
});

test("every function that ends jobs tells those that wait for them", async () => {
  const enders = await verbs.query<{ name: string; tells: boolean }>(`
    select proname as name, prosrc ~ 'note_(moves|failed)\\(' as tells
    from pg_proc
    where pronamespace = 'sluice'::regnamespace and prosrc ~ '(insert into (closed|done) |update closed set status)'
    order by 1`);
  // These write for callers that tell, or move jobs that have ended long ago.
  const silent = ["drop_day", "remove_from_done", "write_resolved"];
  expect(enders.filter(({ tells }) => !tells).map(({ name }) => name)).toEqual(silent);
  expect(enders.length).toBeGreaterThan(silent.length + 8);
});

test("settles of plain leases look for nothing", async () => {
  await jobs.add("plain");
  await jobs.claim();
  expect(await verbs.query("select linked from sluice.lease")).toEqual([{ linked: null }]);
});

test("a claim tells that there is more while another one reads the events", async () => {
  await jobs.flow({ ref: "a" }, { ref: "b", after: ["a"] });
  await jobs.settle(await jobs.claim(), complete);
  await inSession(db.pool, async (client) => {
    await client.query("begin");
    await client.query("select pg_advisory_xact_lock(sluice.ends_lock_of('default'))");
    const answer = await jobs.value<{ has_more: boolean; leases: null }>(
      "select sluice.claim('default', '{echo}', 1, 60)",
    );
    expect(answer).toMatchObject({ has_more: true, leases: null });
    await client.query("rollback");
  });
  expect(await jobs.drain()).toBe("b");
});
