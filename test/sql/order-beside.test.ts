// Order beside the other rules of a claim: types, priorities, limits, breakers, buckets and isolated jobs.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openBreaker, reapLeases } from "../../src/core/sql/index.ts";
import { differences } from "../support/balance.ts";
import { keyedJobsOf, numbered, ofKey, sorted } from "../support/keyed-jobs.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { wrongKeys } from "../support/turns.ts";
import { complete, only, times } from "../support/verbs.ts";

const db = useTestDatabase();
const jobs = keyedJobsOf(db);
const { verbs } = jobs;
beforeEach(() => emptyQueue(db.pool));
afterEach(async () => {
  expect(await wrongKeys(db.pool)).toEqual([]);
  expect(await differences(verbs)).toEqual([]);
});

describe("a key with jobs of several types and priorities", () => {
  const types = ["echo", "other"];

  test("keeps its order across them", async () => {
    await jobs.put("a1", { priority: 1 });
    await jobs.put("a2", { type: "other", priority: 9 });
    await jobs.put("a3", { priority: 5 });
    await jobs.put("a4", { type: "other", priority: 9 });
    expect(await jobs.take({ types })).toBe("a1");
    expect(await jobs.take({ types })).toBe("");
    await jobs.end("a1");
    expect(await jobs.drain({ types })).toBe("a2 a3 a4");
  });

  test("keeps its order across them with runs", async () => {
    await jobs.put("a1 a2", { priority: 1 });
    await jobs.put("a3", { type: "other", priority: 9 });
    await jobs.put("a4 a5");
    const taken = await jobs.take({ types, run: 10 });
    expect("a1 a2 a3 a4 a5".startsWith(taken)).toBe(true);
    expect(await jobs.take({ types, run: 10 })).toBe("");
    await jobs.end(taken);
    expect(`${taken} ${await jobs.drain({ types, run: 10 })}`.trim()).toBe("a1 a2 a3 a4 a5");
  });

  test("keeps its order when they are enqueued in one call", async () => {
    const [first, second, third] = jobs.requests("a1 a2 a3");
    if (!first || !second || !third) throw new Error("three are made");
    await verbs.enqueue(first, { ...second, type: "other", priority: 9 }, { ...third, priority: 1 });
    expect(await jobs.drain({ types, run: 3 })).toBe("a1 a2 a3");
  });

  test("is not overtaken by a claimer that asks for the type of a later job only", async () => {
    await jobs.put("a1", { type: "other" });
    await jobs.put("a2 b1");
    expect(await jobs.take()).toBe("b1");
    expect(await jobs.take({ run: 5 })).toBe("");
    expect(await jobs.take({ types: ["other"] })).toBe("a1");
    expect(await jobs.take()).toBe("");
    await jobs.end("a1");
    expect(await jobs.take()).toBe("a2");
  });

  test("is ordered among other keys by the priority of its next job", async () => {
    await jobs.put("a1 a2", { priority: 1 });
    await jobs.put("b1", { priority: 9 });
    await jobs.put("c1", { priority: 5 });
    await verbs.enqueueOne({ payload: { name: "plain" }, priority: 7 });
    const order = [];
    for (let n = 0; n < 4; n++) order.push((await verbs.claimOne()).payload.name);
    expect(order).toEqual(["b1", "plain", "c1", "a1"]);
  });
});

describe("a limit of the type", () => {
  test("on concurrency holds for jobs with keys, and none is lost", async () => {
    const types = [{ type: "echo", limits: { concurrency: 2 } }];
    await jobs.put("a1 a2 b1 b2 c1");
    await jobs.put("d1", { partitionKey: null });
    const order: string[] = [];
    while (order.length < 6) {
      const taken = await jobs.take({ types, run: 5 });
      expect(taken).not.toBe("");
      expect(taken.split(" ").length).toBeLessThanOrEqual(2);
      order.push(...taken.split(" "));
      await jobs.end(taken);
    }
    expect(sorted(order.join(" "))).toBe("a1 a2 b1 b2 c1 d1");
    expect([ofKey("a", order.join(" ")), ofKey("b", order.join(" "))]).toEqual(["a1 a2", "b1 b2"]);
  });

  test("on the rate holds for runs", async () => {
    const types = [{ type: "echo", limits: { rate: { limit: 3, perSeconds: 3600 } } }];
    await jobs.put(numbered("a", 1, 10));
    expect(await jobs.drain({ types, run: 10 })).toBe("a1 a2 a3");
    expect(await jobs.drain({ run: 10 })).toBe(numbered("a", 4, 10));
  });

  test("keeps a later job of another type waiting, and lets other keys pass", async () => {
    const types = [{ type: "echo", limits: { concurrency: 1 } }, "other"];
    await jobs.put("b1");
    await jobs.put("a1");
    await jobs.put("a2 c1", { type: "other" });
    const taken = [];
    for (let n = 0; n < 3; n++) taken.push(await jobs.take({ types }));
    expect(sorted(taken.join(" "))).toBe("b1 c1");
    await jobs.end("b1");
    expect(await jobs.take({ types })).toBe("a1");
    await jobs.end("a1");
    expect(await jobs.take({ types })).toBe("a2");
  });
});

test("a breaker lets one job through as its probe, the first of its key, and loses no turn", async () => {
  await jobs.put("a1 a2 a3 b1");
  await db.run(openBreaker("echo"));
  await verbs.query("update sluice.breaker set probed_at = now() - interval '1 hour'");
  const probes = await verbs.claim({ run: 5 });
  expect(probes).toHaveLength(1);
  expect(["a1", "b1"]).toContain(only(probes).payload.name);
  expect(await jobs.take({ run: 5 })).toBe("");
  await verbs.settle(probes, { kind: "retry", message: "busy", retryInSeconds: 0 });
  expect(await jobs.take({ run: 5 })).toBe("");
  await verbs.query("delete from sluice.breaker");
  const order = await jobs.drain({ run: 5 });
  expect([ofKey("a", order), ofKey("b", order)]).toEqual(["a1 a2 a3", "b1"]);
});

describe("abandoned jobs of several keys", () => {
  test("are isolated in groups, keep the turns of their keys, and others go on beside them", async () => {
    await jobs.put("a1 a2 b1 b2 c1 c2");
    await jobs.take({ leaseSeconds: -1 });
    await db.run(reapLeases({ limit: 10 }));
    await jobs.makeDue();
    await jobs.put("d1");
    const claims = await Promise.all(times(4, () => verbs.claim()));
    const groups = claims.filter((batch) => batch.length > 0);
    for (const batch of groups) expect(new Set(batch.map((job) => job.abandonments)).size).toBe(1);
    const names = groups.flat().map((job) => String(job.payload.name));
    expect(sorted(names.join(" "))).toBe("a1 b1 c1 d1");
    await verbs.settle(groups.flat(), complete);
    expect(sorted(await jobs.drain())).toBe("a2 b2 c2");
  });

  test("wait for a claimer that takes isolated jobs, and keep their keys still", async () => {
    await jobs.put("a1 a2");
    await jobs.take({ leaseSeconds: -1 });
    await db.run(reapLeases({ limit: 10 }));
    await jobs.makeDue();
    expect(await jobs.take({ takeIsolated: false })).toBe("");
    expect(await jobs.take()).toBe("a1");
    await jobs.end("a1");
    expect(await jobs.take({ takeIsolated: false })).toBe("a2");
  });
});

describe("a claim that names buckets", () => {
  test("takes jobs of keys in these buckets and jobs without a partition key, and no others", async () => {
    await jobs.put("a1 b1 c1 d1 e1");
    await verbs.enqueueOne({ payload: { name: "plain" } });
    const rows = await verbs.query<{ key: string; bucket: number }>(
      `select key, sluice.bucket_of(sluice.key_of_job('default', key, null)) as bucket
       from unnest('{a,b,c,d,e}'::text[]) as key`,
    );
    const own = rows.filter(({ key }) => key === "b" || key === "d");
    const buckets = own.map(({ bucket }) => bucket);
    const wanted = rows.filter(({ bucket }) => buckets.includes(bucket)).map(({ key }) => `${key}1`);
    expect(sorted(await jobs.take({ buckets }))).toBe([...wanted, "plain"].toSorted().join(" "));
    expect(await jobs.take({ buckets: [] })).toBe("");
    const rest = rows.map(({ key }) => `${key}1`).filter((name) => !wanted.includes(name));
    expect(sorted(await jobs.take())).toBe(rest.join(" "));
  });
});
