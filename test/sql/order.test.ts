// Strict order: jobs of one partition key run one at a time, in the order in which they became ready.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { listJobs, pause, reapLeases, resume, settleOne } from "../../src/core/sql/index.ts";
import { differences } from "../support/balance.ts";
import { keyedJobsOf, numbered, ofKey, sorted } from "../support/keyed-jobs.ts";
import { inSession, sqlState } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { wrongKeys } from "../support/turns.ts";
import { complete, times } from "../support/verbs.ts";

const db = useTestDatabase();
const jobs = keyedJobsOf(db);
const { verbs } = jobs;
beforeEach(() => emptyQueue(db.pool));
afterEach(async () => {
  expect(await wrongKeys(db.pool)).toEqual([]);
  expect(await differences(verbs)).toEqual([]);
});

describe("jobs of one key", () => {
  test("run one at a time, and jobs of other keys and without a key run beside them", async () => {
    await jobs.put("a1 a2 a3 b1");
    await verbs.enqueueOne({ payload: { name: "plain" } });
    expect(sorted(await jobs.take())).toBe("a1 b1 plain");
    expect(await jobs.take()).toBe("");
    expect(await jobs.end("a1")).toBe("a1");
    expect(await jobs.take()).toBe("a2");
    expect(await jobs.take()).toBe("");
  });

  test("run in the order in which they were enqueued, across calls", async () => {
    for (const name of ["a1", "b1", "a2", "a3", "b2"]) await jobs.put(name);
    await jobs.put("a4 a5 b3");
    const order = await jobs.drain();
    expect(ofKey("a", order)).toBe("a1 a2 a3 a4 a5");
    expect(ofKey("b", order)).toBe("b1 b2 b3");
  });

  test("keep the order of one transaction that enqueues several times", async () => {
    await inSession(db.pool, async (client) => {
      await client.query("begin");
      for (const name of ["a1", "b1", "a2", "a3"])
        await client.query("select sluice.enqueue('echo', $1, partition_key => $2)", [{ name }, name[0]]);
      await client.query("commit");
    });
    expect(ofKey("a", await jobs.drain())).toBe("a1 a2 a3");
  });

  test("run in order when many are enqueued and each claim takes few", async () => {
    const names = numbered("a", 1, 60);
    await jobs.put(names);
    await jobs.put(numbered("b", 1, 60));
    const order = await jobs.drain({ limit: 1 });
    expect(ofKey("a", order)).toBe(names);
  });

  test("are all found when one claim has to look several times to find enough keys", async () => {
    await jobs.put(`b1 ${numbered("a", 1, 40)} b2`);
    const order = await jobs.drain({ limit: 30 });
    expect(ofKey("b", order)).toBe("b1 b2");
    expect(ofKey("a", order)).toBe(numbered("a", 1, 40));
  });

  test("are given out once by many concurrent claimers", async () => {
    await jobs.put("a1 a2 a3 b1 b2 c1");
    const claims = await Promise.all(times(8, () => verbs.claim()));
    const names = claims.flat().map((job) => job.payload.name);
    expect(names.toSorted()).toEqual(["a1", "b1", "c1"]);
  });

  test("follow each other in one call that settles one and claims the next", async () => {
    await jobs.put("a1 a2");
    await jobs.take();
    const { rows } = await db.pool.query(
      `select sluice.claim('default', '{echo}', 10, 60, p_settle_ids => array[$1::uuid],
                           p_settle_keys => array[$2::uuid]) as claimed`,
      [jobs.held("a1").id, jobs.held("a1").leaseKey],
    );
    expect(rows[0].claimed).toMatchObject({ settled: ["completed"] });
    expect(rows[0].claimed.leases[0].jobs.map((job: [string, { name: string }]) => job[1].name)).toEqual([
      "a2",
    ]);
  });

  test("wait visibly: each is pending, and a list shows all of them", async () => {
    await jobs.put("a1 a2 a3");
    await jobs.take();
    expect([await jobs.statusOf("a1"), await jobs.statusOf("a2")]).toEqual(["processing", "pending"]);
    const filter = { types: null, queue: "default", status: "pending", limit: 10 } as const;
    const listed = (await db.run(listJobs(filter))).jobs;
    expect(listed.map((job) => job.payload.name)).toEqual(["a3", "a2"]);
  });

  test("are separate from jobs of the same key in another queue, and of the same fair key", async () => {
    await jobs.put("a1 a2");
    await jobs.put("a3 a4", { queue: "other" });
    await jobs.put("a5 a6", { partitionKey: null, fairKey: "a" });
    expect(sorted(await jobs.take())).toBe("a1 a5 a6");
    expect(await jobs.take({ queue: "other" })).toBe("a3");
  });

  test("have no fair key", async () => {
    const both = jobs.put("a1", { fairKey: "x" });
    await expect(both).rejects.toThrow("fair_key: must not be given together with partition_key");
  });
});

describe("a delayed job", () => {
  test("joins its key when it is due, behind those that were ready before", async () => {
    await jobs.put("a1", { delaySeconds: 60 });
    await jobs.put("a2");
    expect(await jobs.take()).toBe("a2");
    await jobs.makeDue();
    expect(await jobs.take()).toBe("");
    await jobs.put("a3");
    await jobs.end("a2");
    expect(await jobs.drain()).toBe("a1 a3");
  });

  test("of an idle key runs when it is due", async () => {
    await jobs.put("a1 a2", { delaySeconds: 60 });
    expect(await jobs.take()).toBe("");
    await jobs.makeDue();
    expect(await jobs.drain()).toBe("a1 a2");
  });
});

describe("a job keeps its place", () => {
  test.each([
    ["a retry", { kind: "retry", message: "busy", retryInSeconds: 60 }],
    ["a snooze", { kind: "snooze", retryInSeconds: 60 }],
  ] as const)("while it waits for %s", async (_, outcome) => {
    await jobs.put("a1 a2");
    await jobs.take();
    await jobs.end("a1", outcome);
    await jobs.put("a3 b1");
    expect(await jobs.take()).toBe("b1");
    await jobs.makeDue();
    expect(await jobs.drain()).toBe("a1 a2 a3");
  });

  test.each([
    ["is released", { kind: "release" }],
    ["is tried again at once", { kind: "retry", message: "busy", retryInSeconds: 0 }],
  ] as const)("when it %s", async (_, outcome) => {
    await jobs.put("a1 a2");
    await jobs.take();
    await jobs.end("a1", outcome);
    expect(await jobs.take()).toBe("a1");
    await jobs.end("a1");
    expect(await jobs.take()).toBe("a2");
  });

  test("when its lease ran out, and its old worker cannot settle it any more", async () => {
    await jobs.put("a1 a2");
    await jobs.take({ leaseSeconds: -1 });
    expect(await jobs.take()).toBe("");
    expect(await db.run(reapLeases({ limit: 10 }))).toEqual({ returned: 1, buried: 0 });
    expect(await jobs.take()).toBe("");
    expect(await jobs.end("a1")).toBe("");
    await jobs.makeDue();
    expect(await jobs.take()).toBe("a1");
    expect(jobs.held("a1")).toMatchObject({ attempt: 2, abandonments: 1 });
    expect(await jobs.take()).toBe("");
    await jobs.end("a1");
    expect(await jobs.take()).toBe("a2");
  });

  test("when the claim that took it is rolled back", async () => {
    await jobs.put("a1 a2");
    await inSession(db.pool, async (client) => {
      await client.query("begin");
      await client.query("select sluice.claim('default', '{echo}', 10, 60)");
      await client.query("rollback");
    });
    expect(await jobs.drain()).toBe("a1 a2");
  });

  test("when its completion is rolled back", async () => {
    await jobs.put("a1 a2");
    await jobs.take();
    await inSession(db.pool, async (client) => {
      await client.query("begin");
      await client.query("select sluice.complete($1, $2)", [jobs.held("a1").id, jobs.held("a1").leaseKey]);
      expect(await jobs.take()).toBe("");
      await client.query("rollback");
    });
    expect(await jobs.take()).toBe("");
    expect(await jobs.end("a1")).toBe("a1");
    expect(await jobs.take()).toBe("a2");
  });

  test("while its type or its queue is paused", async () => {
    await jobs.put("a1 a2");
    await jobs.put("a3", { type: "other" });
    const types = ["echo", "other"];
    await db.run(pause("ann", { type: "echo" }));
    expect(await jobs.take({ types })).toBe("");
    await db.run(resume("ann", { type: "echo" }));
    expect(await jobs.take({ types })).toBe("a1");
    await db.run(pause("ann", { queue: "default" }));
    expect(await jobs.end("a1")).toBe("a1");
    await jobs.put("a4 b1");
    expect(await jobs.take({ types })).toBe("");
    await db.run(resume("ann", { queue: "default" }));
    expect(ofKey("a", await jobs.drain({ types }))).toBe("a2 a3 a4");
  });
});

test("a settle of one job that answers with the job gives the turn on, or keeps it", async () => {
  await jobs.put("a1 a2");
  await jobs.take();
  await verbs.isApplied(settleOne({ job: jobs.held("a1"), outcome: { kind: "release" } }));
  expect(await jobs.take()).toBe("a1");
  await verbs.isApplied(settleOne({ job: jobs.held("a1"), outcome: complete }));
  expect(await jobs.take()).toBe("a2");
});

test("a second settle of a job gives its key's turn on once", async () => {
  await jobs.put("a1 a2 a3");
  await jobs.take();
  const job = jobs.held("a1");
  const answers = await Promise.all([verbs.settle([job], complete), verbs.settle([job], complete)]);
  expect(answers.flat().filter((answer) => answer.applied)).toHaveLength(1);
  expect(await jobs.take()).toBe("a2");
  expect(await jobs.take()).toBe("");
});

test("any text of up to 255 characters is a key", async () => {
  for (const partitionKey of ["ü", "a b", "'", "x".repeat(255)])
    await verbs.enqueue({ partitionKey }, { partitionKey });
  expect(await verbs.claim()).toHaveLength(4);
  expect(await sqlState(verbs.enqueueOne({ partitionKey: "x".repeat(256) }))).not.toBe("none");
});
