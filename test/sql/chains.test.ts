// Chains: an attempt that ends with what comes next. And jobs that are suspended until a signal, jobs or a time.
import { beforeEach, describe, expect, test } from "vitest";
import { differences } from "../support/balance.ts";
import { bury, complete, flowJobsOf, type Held, named, names } from "../support/flow-jobs.ts";
import { inSession, untilWaiting } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { wrongKeys } from "../support/turns.ts";
import { times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const jobs = flowJobsOf(db.pool);
const verbs = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const next = (name: string, options = {}) => ({ type: "echo", payload: { name }, ...options });
const first = async (options = {}) => {
  const [held] = await jobs.claim(options);
  if (!held) throw new Error("nothing was claimed");
  return held;
};
const goOn = (held: Held, name: string, options = {}) =>
  jobs.settle([held], { outcome: "complete", output: { of: held.name }, next: next(name, options) });
/** Where a pending job is, without what differs between two of the same options. */
const rowsOf = (id: string) =>
  jobs.value<object>(
    `select jsonb_build_object(
       'job', (select to_jsonb(job) - '{id,chain,chain_index,scheduled_at,expires_at}'::text[]
                 || jsonb_build_object('later', scheduled_at > now(), 'expires', expires_at > now()) from sluice.job where id = $1),
       'ready', (select to_jsonb(ready) - '{id,seq}'::text[] from sluice.ready where id = $1),
       'scheduled', (select to_jsonb(scheduled) - '{id,run_at}'::text[] from sluice.scheduled where id = $1),
       'tags', (select array_agg(tag) from sluice.job_tag where id = $1))`,
    [id],
  );
const suspend = (held: Held, until: object) => jobs.settle([held], { outcome: "suspend", ...until });

describe("a chain", () => {
  test("goes on with what its settle names, and ends with the last output", async () => {
    const id = await jobs.add("one");
    expect(await goOn(await first(), "two")).toEqual(["completed"]);
    await goOn(await first(), "three");
    const chain = () => jobs.value<{ jobs: string[] }>("select sluice.chain_of($1)", [id]);
    expect(await chain()).toMatchObject({ chain_id: id, status: "pending", output: null });
    await jobs.settle([await first()], { outcome: "complete", output: { of: "three" } });
    const ended = await chain();
    expect(ended).toMatchObject({ chain_id: id, status: "completed", output: { of: "three" } });
    expect(ended.jobs).toHaveLength(3);
    expect(await jobs.value("select sluice.chain_of($1)", [ended.jobs[1]])).toEqual(ended);
    const [shown] = await verbs.query("select chain_id, chain_index from sluice.jobs where id = $1", [
      ended.jobs[2],
    ]);
    expect(shown).toEqual({ chain_id: id, chain_index: 2 });
    expect(await differences(verbs)).toEqual([]);
  });

  test("that is settled twice goes on once", async () => {
    await jobs.add("one");
    const held = await first();
    await goOn(held, "two");
    expect(await goOn(held, "two")).toEqual([null]);
    expect(await jobs.drain()).toBe("two");
  });

  test("of several that are settled at once goes on where it should, and the others end", async () => {
    const ids = [await jobs.add("a"), await jobs.add("b"), await jobs.add("c")];
    for (const [index, name] of ["after a", "after b", "after c"].entries())
      await jobs.add(name, { after: [ids[index]], queue: "other" });
    const held = (await jobs.claim()).toSorted((a, b) => (a.id < b.id ? -1 : 1));
    const goesOn = { outcome: "complete" as const, output: [null], next: next("b2") };
    expect(await jobs.settle(held, [complete, goesOn, complete])).toEqual(times(3, () => "completed"));
    expect(await jobs.drain({ queue: "other" })).toBe("after a after c");
    expect(await jobs.drain()).toBe("b2");
    expect(await jobs.drain({ queue: "other" })).toBe("after b");
    expect(await jobs.value("select output from sluice.jobs where id = $1", [ids[1]])).toEqual([null]);
    expect(await differences(verbs)).toEqual([]);
  });

  test.each([
    {},
    { queue: "other", priority: 7, max_attempts: 2 },
    { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" },
    { partition_key: "k" },
    { fair_key: "f" },
    { tags: ["t"] },
    { delay_seconds: 3_600 },
    { expires_at: "2900-01-01T00:00:00Z" },
  ])("stores a successor with %o as an enqueue stores a job", async (options) => {
    await jobs.add("one");
    const held = await first();
    const alike = await jobs.value<string>("select sluice.enqueue_jobs($1) -> 0 ->> 'id'", [
      JSON.stringify([next("two", options)]),
    ]);
    await goOn(held, "two", options);
    const [row] = await verbs.query("select id from sluice.chain_job where chain = $1 and index = 1", [
      held.id,
    ]);
    expect(await rowsOf(String(row?.id))).toEqual(await rowsOf(alike));
    expect(await differences(verbs)).toEqual([]);
  });

  test.each([
    [{ payload: [] }, "payload: must be a JSON object"],
    [{ priority: 10 }, "priority: must be between 0 and 9"],
    [{ type: "No Type" }, "type: lower case"],
    [{ partition_key: "k", fair_key: "f" }, "fair_key: must not be given together"],
  ])("refuses a next with %o, and the job is not settled", async (options, message) => {
    const id = await jobs.add("one");
    await expect(goOn(await first(), "two", options)).rejects.toThrow(message);
    expect(await jobs.status(id)).toBe("processing");
  });

  test("is waited for until its end, by whatever job of it the blocker is named", async () => {
    const one = await jobs.add("one");
    await jobs.add("early", { after: [one] });
    await goOn(await first(), "two");
    const two = await first();
    await jobs.add("late", { after: [two.id] });
    await jobs.add("later", { after: [one] });
    await goOn(two, "three");
    const three = await first();
    expect(three.name).toBe("three");
    await jobs.settle([three], { outcome: "complete", output: { n: 3 } });
    const held = await jobs.claim();
    expect(names(held)).toBe("early late later");
    expect(held[0]?.blockers?.jobs?.[0]).toMatchObject({ status: "completed", output: { n: 3 } });
  });

  test("that dies at a later job kills its dependents, and that job's replay brings them back", async () => {
    const one = await jobs.add("one");
    const after = await jobs.add("after", { after: [one] });
    await goOn(await first(), "two");
    const two = await first();
    await jobs.settle([two], bury);
    await jobs.claim();
    const [dead] = await verbs.query("select culprit from sluice.closed where id = $1", [after]);
    expect(dead).toEqual({ culprit: two.id });
    await jobs.replay(two.id);
    expect(await jobs.drain()).toBe("two, after");
  });

  test("of a flow counts for the flow", async () => {
    const { flowId } = await jobs.flow({ ref: "a" }, { ref: "b", after: ["a"] });
    await goOn(await first(), "a2");
    expect(await jobs.find(flowId)).toMatchObject({
      total: 3,
      counts: { completed: 1, pending: 1, blocked: 1 },
    });
    expect(await jobs.drain()).toBe("a2, b");
    expect(await jobs.find(flowId)).toMatchObject({
      status: "completed",
      total: 3,
      counts: { completed: 3 },
    });
  });

  test("goes on in the middle of a run of an ordered key, behind what waits", async () => {
    for (const name of ["k1", "k2", "k3", "k4"]) await jobs.add(name, { partition_key: "k" });
    const run = await jobs.claim({ run: 3 });
    await jobs.settle(
      [named(run, "k1"), named(run, "k2")],
      [{ outcome: "complete", next: next("k5", { partition_key: "k" }) }, complete],
    );
    await jobs.complete([named(run, "k3")]);
    expect(await jobs.drain({ run: 1 })).toBe("k4, k5");
    expect(await wrongKeys(db.pool)).toEqual([]);
  });

  test.each([{ after: [] }, { idempotency_key: "k" }])("refuses a next with %o", async (options) => {
    const one = await jobs.add("one");
    const held = await first();
    await expect(
      goOn(held, "two", { ...options, after: "after" in options ? [one] : undefined }),
    ).rejects.toThrow("next: must not");
    expect(await jobs.status(one)).toBe("processing");
  });
});

describe("a suspended job", () => {
  test("waits for a signal, and its attempt does not count", async () => {
    const id = await jobs.add("a");
    expect(await suspend(await first(), { signal: { name: "go", key: "1" }, seconds: 60 })).toEqual([
      "blocked",
    ]);
    expect(await jobs.claim()).toEqual([]);
    expect(await jobs.waitingFor(id)).toMatchObject({ kind: "signal", name: "go", key: "1" });
    expect(await differences(verbs)).toEqual([]);
    expect(await jobs.signal("go", "1", { by: "ann" })).toBe(true);
    expect(await jobs.signal("go", "1", { by: "bob" })).toBe(false);
    const held = await first();
    expect(held.id).toBe(id);
    expect(await jobs.value("select sluice.signal_of('go', '1')")).toMatchObject({ payload: { by: "ann" } });
    expect((await verbs.find(id)).attempts).toBe(1);
    expect([await verbs.count("scheduled"), await verbs.count("edge")]).toEqual([0, 0]);
    await jobs.complete([held]);
    expect(await differences(verbs)).toEqual([]);
  });

  test("goes on at once if the signal was there", async () => {
    await jobs.signal("go", "1");
    await jobs.add("a");
    await suspend(await first(), { signal: { name: "go", key: "1" } });
    expect(await jobs.drain()).toBe("a");
  });

  test("does not miss a signal that is sent meanwhile and committed later", async () => {
    await jobs.add("a");
    const held = await first();
    await inSession(db.pool, async (client) => {
      await client.query("begin");
      await flowJobsOf(client).signal("go", "1");
      await suspend(held, { signal: { name: "go", key: "1" } });
      expect(await jobs.claim()).toEqual([]);
      await client.query("commit");
    });
    expect(await jobs.drain()).toBe("a");
  });

  test("does not miss a signal that was begun before and found nobody", async () => {
    await jobs.add("a");
    const held = await first();
    await inSession(db.pool, (waiter) =>
      inSession(db.pool, async (sender) => {
        await waiter.query("begin");
        await flowJobsOf(waiter).settle([held], { outcome: "suspend", signal: { name: "go", key: "1" } });
        await sender.query("begin");
        await flowJobsOf(sender).signal("go", "1");
        await waiter.query("commit");
        expect(await jobs.claim()).toEqual([]);
        await sender.query("commit");
      }),
    );
    expect(await jobs.drain()).toBe("a");
  });

  test.each(["commit", "rollback"])(
    "gets the first of two signals that are sent at once: %s",
    async (end) => {
      await jobs.add("a");
      await suspend(await first(), { signal: { name: "go", key: "1" } });
      await inSession(db.pool, async (client) => {
        await client.query("begin");
        expect(await flowJobsOf(client).signal("go", "1", { by: "first" })).toBe(true);
        const second = jobs.signal("go", "1", { by: "second" });
        await untilWaiting(db.pool);
        await client.query(end);
        expect(await second).toBe(end === "rollback");
      });
      expect(await jobs.value("select sluice.signal_of('go', '1') -> 'payload' ->> 'by'")).toBe(
        end === "commit" ? "first" : "second",
      );
      expect(await jobs.drain()).toBe("a");
    },
  );

  test("goes on after its time-out, and a later signal finds nobody", async () => {
    const id = await jobs.add("a");
    await suspend(await first(), { signal: { name: "go", key: "1" }, seconds: 60 });
    await jobs.makeDue();
    const held = await first();
    expect(held.id).toBe(id);
    await jobs.signal("go", "1");
    expect(await jobs.claim()).toEqual([]);
    await suspend(held, { signal: { name: "other", key: "1" } });
    expect(await jobs.claim()).toEqual([]);
    expect(await jobs.status(id)).toBe("blocked");
    expect(await differences(verbs)).toEqual([]);
  });

  test("waits until all of its jobs have ended, whatever their end", async () => {
    const id = await jobs.add("a", { queue: "other" });
    const held = await first({ queue: "other" });
    const children = [await jobs.add("x"), await jobs.add("y"), await jobs.add("z")];
    await suspend(held, { jobs: children });
    const parts = await jobs.claim();
    await jobs.settle([named(parts, "x")], bury);
    await jobs.complete([named(parts, "y")]);
    expect(await jobs.claim({ queue: "other" })).toEqual([]);
    expect(await jobs.waitingFor(id)).toMatchObject({ kind: "jobs", count: 1, job_ids: [children[2]] });
    await jobs.settle([named(parts, "z")], { outcome: "complete", output: { n: 1 } });
    expect((await first({ queue: "other" })).id).toBe(id);
    expect(await jobs.value("select sluice.outcomes_of($1)", [children])).toEqual([
      { job_id: children[0], status: "dead", output: null },
      { job_id: children[1], status: "completed", output: null },
      { job_id: children[2], status: "completed", output: { n: 1 } },
    ]);
  });

  test("without a signal and jobs is snoozed", async () => {
    const id = await jobs.add("a");
    expect(await suspend(await first(), { seconds: 60 })).toEqual(["pending"]);
    expect(await jobs.status(id)).toBe("pending");
  });

  test("keeps the turn of its ordered key, and the rest of its run waits behind it", async () => {
    for (const name of ["k1", "k2", "k3"]) await jobs.add(name, { partition_key: "k" });
    const run = await jobs.claim({ run: 3 });
    await suspend(named(run, "k1"), { signal: { name: "go", key: "k" } });
    expect(await jobs.claim({ run: 3 })).toEqual([]);
    expect(await wrongKeys(db.pool)).toEqual([]);
    expect(await jobs.waitingFor(named(run, "k2").id)).toMatchObject({ kind: "key", holder: "blocked" });
    await jobs.signal("go", "k");
    expect(await jobs.drain()).toBe("k1, k2, k3");
    expect(await wrongKeys(db.pool)).toEqual([]);
  });

  test("that is cancelled gives its turn back", async () => {
    for (const name of ["k1", "k2"]) await jobs.add(name, { partition_key: "k" });
    const held = await first();
    await suspend(held, { signal: { name: "go", key: "k" }, seconds: 60 });
    await jobs.cancel(held.id);
    expect(await jobs.drain()).toBe("k2");
    expect([await verbs.count("scheduled"), await verbs.count("blocked")]).toEqual([0, 0]);
  });

  test("of a fair key waits for its turn again", async () => {
    for (const name of ["f1", "g1"]) await jobs.add(name, { fair_key: name.slice(0, 1) });
    const held = await jobs.claim();
    await suspend(named(held, "f1"), { signal: { name: "go", key: "f" } });
    await jobs.signal("go", "f");
    expect(await jobs.drain()).toBe("f1");
    expect(await wrongKeys(db.pool)).toEqual([]);
  });
});

describe("a cancelled flow", () => {
  const cancelFlow = (id: string) =>
    jobs.value<{ cancelled: number }>("select sluice.cancel_flow('ann', $1)", [id]);

  test("ends all that has not begun, and nothing follows what runs", async () => {
    const { flowId } = await jobs.flow(
      { ref: "a" },
      { ref: "b" },
      { ref: "later", delay_seconds: 60 },
      { ref: "c", after: ["a"] },
      { ref: "d", after: ["c"] },
    );
    const held = await first({ limit: 1 });
    expect(await cancelFlow(flowId)).toEqual({ cancelled: 4 });
    expect((await jobs.find(flowId)).status).toBe("running");
    await goOn(held, "a2");
    expect(await jobs.drain()).toBe("");
    expect(await jobs.find(flowId)).toMatchObject({
      status: "cancelled",
      counts: { completed: 1, cancelled: 5 },
    });
    expect(await differences(verbs)).toEqual([]);
  });

  test.each(["settle", "cancel"])(
    "cancels a successor whose settle was open at the same time, whichever commits first: the %s",
    async (first) => {
      const { flowId } = await jobs.flow({ ref: "a" });
      const [held] = await jobs.claim();
      const next = { type: "echo", payload: { name: "a2" } };
      const endFirst = first === "settle" ? ["settle", "cancel"] : ["cancel", "settle"];
      await inSession(db.pool, (settling) =>
        inSession(db.pool, async (cancelling) => {
          const sessions: Record<string, typeof settling> = { settle: settling, cancel: cancelling };
          for (const client of [settling, cancelling]) await client.query("begin");
          await flowJobsOf(settling).settle(held ? [held] : [], { outcome: "complete", next });
          await cancelling.query("select sluice.cancel_flow('ann', $1)", [flowId]);
          for (const name of endFirst) await sessions[name]?.query("commit");
        }),
      );
      expect(await jobs.drain()).toBe("");
      expect(await jobs.find(flowId)).toMatchObject({
        status: "cancelled",
        counts: { completed: 1, cancelled: 1 },
      });
      expect(await differences(verbs)).toEqual([]);
    },
  );

  test("lets a successor that ran before try again", async () => {
    const { flowId } = await jobs.flow({ ref: "a" });
    const next = { type: "echo", payload: { name: "a2" } };
    await jobs.settle(await jobs.claim(), { outcome: "complete", next });
    const held = await jobs.claim();
    await cancelFlow(flowId);
    await jobs.settle(held, { outcome: "retry", message: "again", seconds: 0 });
    expect(await jobs.drain()).toBe("a2");
    expect((await jobs.find(flowId)).counts).toMatchObject({ completed: 2, cancelled: 0 });
  });

  test("is answered with null if there is none", async () => {
    expect(await cancelFlow(await jobs.value<string>("select sluice.new_id()"))).toBeNull();
  });
});

describe("a deleted flow", () => {
  const deleteFlow = (id: string) => jobs.value<string>("select sluice.delete_flow('ann', $1)", [id]);

  test("does not take away the edge of a job that has just begun to wait for one of its jobs", async () => {
    const { flowId, ids } = await jobs.flow({ ref: "a" });
    await jobs.settle(await jobs.claim(), bury);
    await inSession(db.pool, async (client) => {
      await client.query("begin");
      await client.query("select from sluice.closed where id = $1 for update", [ids.a]);
      const deleted = deleteFlow(flowId);
      await untilWaiting(db.pool);
      await jobs.add("late", { after: [ids.a], on_blocker_dead: "run" });
      await client.query("commit");
      expect(await deleted).toBe("deleted");
    });
    expect(await jobs.drain()).toBe("late");
    expect(
      await jobs.value("select before ->> 'status' from sluice.audit where action = 'delete flow'"),
    ).toBe("dead");
  });

  test("leaves nothing behind but what others have", async () => {
    const { flowId, ids } = await jobs.flow({ ref: "a" }, { ref: "b" }, { ref: "c", after: ["b"] });
    const other = await jobs.add("other");
    expect(await deleteFlow(flowId)).toBe("running");
    const held = await jobs.claim();
    await jobs.settle(
      held,
      held.map(({ name }) => (name === "b" ? bury : complete)),
    );
    await jobs.drain();
    expect((await jobs.find(flowId)).status).toBe("dead");
    const waiting = await jobs.add("waiting", { after: [ids.a, ids.c], on_blocker_dead: "run" });
    expect(await deleteFlow(flowId)).toBe("waited_for");
    expect(await jobs.drain()).toBe("waiting");
    expect(await deleteFlow(flowId)).toBe("deleted");
    expect(await deleteFlow(flowId)).toBeNull();
    expect((await verbs.query("select id from sluice.job order by id")).map(({ id }) => id)).toEqual([
      other,
      waiting,
    ]);
    expect(await jobs.status(other)).toBe("completed");
    for (const table of ["flow", "flow_ledger", "closed", "edge"]) expect(await verbs.count(table)).toBe(0);
    expect(await jobs.value("select count(*)::int from sluice.done cross join unnest(ids)")).toBe(2);
  });
});

test("flows are listed, newest first, and their jobs", async () => {
  const one = await jobs.flow({ ref: "a" });
  const two = await jobs.flow({ ref: "a" }, { ref: "b", after: ["a"] });
  const listed = await verbs.query<{ flow: { flow_id: string } }>(
    "select sluice.list_flows(null, 10) as flow",
  );
  expect(listed.map(({ flow }) => flow.flow_id)).toEqual([two.flowId, one.flowId]);
  const members = await verbs.query<{ status: string }>("select status from sluice.flow_jobs($1, null, 10)", [
    two.flowId,
  ]);
  expect(members.map(({ status }) => status)).toEqual(["pending", "blocked"]);
  const [row] = await verbs.query("select flow_id from sluice.jobs where id = $1", [two.ids.b]);
  expect(row).toEqual({ flow_id: two.flowId });
});
