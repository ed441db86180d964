// Runs: a claim takes several consecutive jobs of one partition key under one lease. A worker runs them one after the other.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { cancel, discard, extend, reapLeases } from "../../src/core/sql/index.ts";
import { differences } from "../support/balance.ts";
import { keyedJobsOf, numbered, ofKey, sorted } from "../support/keyed-jobs.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { wrongKeys } from "../support/turns.ts";
import { complete, only } from "../support/verbs.ts";

const db = useTestDatabase();
const jobs = keyedJobsOf(db, "partitionKey", { run: 3 });
const { verbs } = jobs;
beforeEach(() => emptyQueue(db.pool));
afterEach(async () => {
  expect(await wrongKeys(db.pool)).toEqual([]);
  expect(await differences(verbs)).toEqual([]);
});

const retry = { kind: "retry", message: "busy", retryInSeconds: 60 } as const;
const bury = { kind: "bury", message: "no use" } as const;

describe("a run", () => {
  test("has consecutive jobs of a key, in order, under one lease", async () => {
    await jobs.put("a1 a2 a3 a4 a5 b1 b2");
    const taken = await jobs.take();
    expect(ofKey("a", taken)).toBe("a1 a2 a3");
    expect(ofKey("b", taken)).toBe("b1 b2");
    const run = ["a1", "a2", "a3"].map(jobs.held);
    expect(new Set(run.map((job) => job.leaseKey)).size).toBe(1);
    expect(new Set(run.map((job) => job.runKey)).size).toBe(1);
    expect(jobs.held("a1").runKey).not.toBeNull();
    expect(jobs.held("a1").runKey).not.toBe(jobs.held("b1").runKey);
    expect(await jobs.take()).toBe("");
  });

  test("has as many jobs as the claim asks for, and one if it does not say", async () => {
    await jobs.put(numbered("a", 1, 20));
    expect(await jobs.take({ run: 7 })).toBe(numbered("a", 1, 7));
    await jobs.end(numbered("a", 1, 7));
    expect(await jobs.take({ run: 1 })).toBe("a8");
  });

  test("never makes a claim larger than its limit", async () => {
    await jobs.put("a1 a2 a3 b1 b2 b3");
    const batch = await verbs.claim({ run: 3, limit: 4 });
    expect(batch).toHaveLength(4);
  });

  test("takes more keys rather than more jobs of one key", async () => {
    await jobs.put("a1 a2 a3 b1 c1");
    const batch = await verbs.claim({ run: 3, limit: 3 });
    expect(sorted(batch.map((job) => String(job.payload.name)).join(" "))).toBe("a1 b1 c1");
  });

  test("is followed by the rest of its key when all its jobs are completed, in one call or several", async () => {
    await jobs.put(numbered("a", 1, 8));
    await jobs.take();
    await jobs.end("a1");
    await jobs.end("a2");
    expect(await jobs.take()).toBe("");
    await jobs.end("a3");
    expect(await jobs.take()).toBe("a4 a5 a6");
    await jobs.end("a4 a5 a6");
    expect(await jobs.take()).toBe("a7 a8");
  });

  test("may be completed out of order, and the key goes on only after the last of it", async () => {
    await jobs.put("a1 a2 a3 a4");
    await jobs.take();
    expect(await jobs.end("a3")).toBe("a3");
    expect(await jobs.end("a1")).toBe("a1");
    expect(await jobs.take()).toBe("");
    expect(await jobs.end("a2")).toBe("a2");
    expect(await jobs.take()).toBe("a4");
  });

  test("takes jobs that were enqueued while the one before them was running", async () => {
    await jobs.put("a1");
    await jobs.take();
    await jobs.put("a2");
    expect(await jobs.take()).toBe("");
    await jobs.put("a3");
    await jobs.end("a1");
    expect(await jobs.take()).toBe("a2 a3");
  });

  test("that is too large for one answer ends before the job that does not fit", async () => {
    const text = "x".repeat(30_000);
    for (const name of ["a1", "a2", "a3", "a4"]) await jobs.put(name, { payload: { name, text } });
    await jobs.put("b1", { payload: { name: "b1", text } });
    const claimed: string[] = [];
    for (let n = 0; n < 6; n++) {
      const batch = await verbs.claim({ run: 4, maxBytes: 70_000 });
      expect(batch.length).toBeLessThanOrEqual(2);
      claimed.push(...batch.map((job) => String(job.payload.name)));
      if (batch.length > 0) await verbs.settle(batch, complete);
    }
    expect(ofKey("a", claimed.join(" "))).toBe("a1 a2 a3 a4");
    expect(ofKey("b", claimed.join(" "))).toBe("b1");
  });

  test("does not pass over a cancelled job that is still waiting to be read", async () => {
    await jobs.put("a1 a2 a3 a4");
    await db.run(cancel(await jobs.idOf("a2")));
    expect(await jobs.take()).toBe("a1 a3 a4");
  });
});

describe("a job of a run that does not complete", () => {
  test("sends the rest back in the same settle, and a later settle of them is refused", async () => {
    await jobs.put("a1 a2 a3 a4");
    await jobs.take();
    expect(await jobs.end("a1")).toBe("a1");
    expect(await jobs.end("a2", retry)).toBe("a2");
    expect([await jobs.statusOf("a2"), await jobs.statusOf("a3")]).toEqual(["pending", "pending"]);
    expect(await jobs.end("a3")).toBe("");
    expect(await jobs.end("a3", bury)).toBe("");
    expect(await jobs.take()).toBe("");
    await jobs.makeDue();
    const taken = await jobs.take();
    expect("a2 a3 a4".startsWith(taken)).toBe(true);
    await jobs.end(taken);
    expect(`${taken} ${await jobs.drain()}`.trim()).toBe("a2 a3 a4");
  });

  test("does not charge the others: only its own attempt counts", async () => {
    await jobs.put("a1 a2 a3");
    await jobs.take();
    await jobs.end("a1", retry);
    await jobs.makeDue();
    await jobs.end(await jobs.take());
    await jobs.drain();
    expect([jobs.held("a1"), jobs.held("a2"), jobs.held("a3")]).toMatchObject([
      { attempt: 2 },
      { attempt: 1 },
      { attempt: 1 },
    ]);
  });

  test.each([
    ["a snooze", { kind: "snooze", retryInSeconds: 60 }],
    ["a release", { kind: "release" }],
    ["a retry at once", { kind: "retry", message: "busy", retryInSeconds: 0 }],
  ] as const)("keeps the turn after %s, and the others follow it in order", async (_, outcome) => {
    await jobs.put("a1 a2 a3 a4");
    await jobs.take();
    await jobs.end("a1", outcome);
    await jobs.put("a5");
    await jobs.makeDue();
    expect(await jobs.drain()).toBe("a1 a2 a3 a4 a5");
  });

  test("is the first of those that fail in one settle: the later ones follow it in order", async () => {
    await jobs.put("a1 a2 a3 a4");
    await jobs.take();
    await jobs.end("a1 a2 a3", { kind: "release" });
    expect(await jobs.drain()).toBe("a1 a2 a3 a4");
  });

  test("sends the rest back when it dies, where dead jobs let others pass", async () => {
    const policy = { onDead: "pass" } as const;
    await jobs.put("a1 a2 a3 a4");
    await jobs.take({ policy });
    await jobs.end("a1", bury);
    expect(await jobs.end("a2")).toBe("");
    expect(await jobs.drain({ policy })).toBe("a2 a3 a4");
  });

  test("sends the rest back when it dies, and blocks them where dead jobs block", async () => {
    await jobs.put("a1 a2 a3 a4");
    await jobs.take();
    await jobs.end("a1");
    await jobs.end("a2", bury);
    expect(await jobs.end("a3")).toBe("");
    expect(await jobs.take()).toBe("");
    expect(await jobs.statusOf("a3")).toBe("pending");
  });

  test("loses nothing when a later one of the run was completed before it failed", async () => {
    await jobs.put("a1 a2 a3 a4");
    await jobs.take();
    await jobs.end("a2");
    await jobs.end("a1", { kind: "release" });
    expect(await jobs.drain()).toBe("a1 a3 a4");
  });

  test("may be a later one while the first is still open: the order is kept either way", async () => {
    await jobs.put("a1 a2 a3 a4");
    await jobs.take();
    expect(await jobs.end("a2", { kind: "release" })).toBe("a2");
    const taken = await jobs.take();
    const isFirstDone = (await jobs.end("a1")) === "a1" && taken === "";
    if (taken !== "") await jobs.end(taken);
    const order = `${taken} ${await jobs.drain()}`.trim();
    expect(order).toBe(isFirstDone ? "a2 a3 a4" : "a1 a2 a3 a4");
  });

  test("runs again at its place if it would block its key and the one before it is settled only later", async () => {
    await jobs.put("a1 a2 a3 a4");
    await jobs.take();
    expect(await jobs.end("a2", bury)).toBe("a2");
    expect(await jobs.statusOf("a2")).toBe("pending");
    await jobs.end("a1");
    expect((await jobs.take({ run: 1 })).split(" ")).toEqual(["a2"]);
    await jobs.end("a2", bury);
    expect(await jobs.drain()).toBe("");
    await db.run(discard("ann", { id: await jobs.idOf("a2") }));
    expect(await jobs.drain()).toBe("a3 a4");
  });

  test("may be told in one call with outcomes of all others: each job ends once, in order", async () => {
    await jobs.put("a1 a2 a3 a4");
    await jobs.take();
    const run = ["a1", "a2", "a3"].map(jobs.held);
    const outcomes = [
      { outcome: "complete" },
      { outcome: "retry", message: "", seconds: 0 },
      { outcome: "complete" },
    ];
    const { statuses } = only(
      await verbs.query<{ statuses: (string | null)[] }>(
        "select sluice.settle($1::uuid[], $2::uuid[], $3::jsonb) as statuses",
        [run.map((job) => job.id), run.map((job) => job.leaseKey), JSON.stringify(outcomes)],
      ),
    );
    expect(statuses.slice(0, 2)).toEqual(["completed", "pending"]);
    const rest = statuses[2] === "completed" ? "a2 a4" : "a2 a3 a4";
    expect(await jobs.drain()).toBe(rest);
  });
});

describe("the lease of a run", () => {
  test("that runs out charges the first job, which goes on isolated, and not the others", async () => {
    await jobs.put("a1 a2 a3 a4");
    await jobs.take({ leaseSeconds: -1 });
    await db.run(reapLeases({ limit: 10 }));
    expect(await jobs.end("a1 a2 a3")).toBe("");
    expect(await jobs.take()).toBe("");
    await jobs.makeDue();
    expect(await jobs.take()).toBe("a1");
    expect(jobs.held("a1")).toMatchObject({ attempt: 2, abandonments: 1 });
    await jobs.end("a1");
    expect(await jobs.take()).toBe("a2 a3 a4");
    expect(jobs.held("a2")).toMatchObject({ attempt: 1, abandonments: 0 });
  });

  test("that runs out charges the first job that is left", async () => {
    await jobs.put("a1 a2 a3 a4");
    await jobs.take({ leaseSeconds: -1 });
    await jobs.end("a1");
    await db.run(reapLeases({ limit: 10 }));
    await jobs.makeDue();
    expect(await jobs.take()).toBe("a2");
    expect(jobs.held("a2")).toMatchObject({ attempt: 2, abandonments: 1 });
    await jobs.end("a2");
    expect(await jobs.drain()).toBe("a3 a4");
  });

  test.each([
    ["block", ""],
    ["pass", "a2 a3 a4"],
  ] as const)("that runs out may bury its first job: with %s the others run: %j", async (onDead, rest) => {
    const policy = { onDead };
    await jobs.put("a1", { maxAttempts: 1 });
    await jobs.put("a2 a3 a4", { maxAttempts: 1 });
    await jobs.take({ policy, leaseSeconds: -1 });
    expect(await db.run(reapLeases({ limit: 10 }))).toMatchObject({ buried: 1 });
    expect(await jobs.statusOf("a1")).toBe("dead");
    expect(await jobs.drain({ policy })).toBe(rest);
  });

  test("is extended as a whole when one of its jobs is extended", async () => {
    await jobs.put("a1 a2 a3 b1");
    await jobs.take({ leaseSeconds: 60 });
    const extended = await db.run(extend([jobs.held("a2")], { seconds: 600 }));
    expect(extended.map(({ id }) => id)).toContain(jobs.held("a2").id);
    const rows = await verbs.query<{ name: string; seconds: number }>(
      `select payload->>'name' as name, extract(epoch from lease_expires_at - now())::float8 as seconds
       from sluice.jobs order by 1`,
    );
    const isExtended = rows.map(({ name, seconds }) => [name, seconds > 300]);
    expect(isExtended).toEqual([
      ["a1", true],
      ["a2", true],
      ["a3", true],
      ["b1", false],
    ]);
    expect(await jobs.end("a1 a2 a3")).toBe("a1 a2 a3");
  });
});

test("a run of a hot key is one claim and one settle", async () => {
  const names = numbered("a", 1, 100);
  await jobs.put(names);
  const batch = await verbs.claim({ run: 100, limit: 100 });
  expect(batch.map((job) => job.payload.name).join(" ")).toBe(names);
  expect((await verbs.settle(batch, complete)).every((answer) => answer.applied)).toBe(true);
  expect(await jobs.take()).toBe("");
});
