// Fair shares: jobs of one queue take turns between fair keys, at most `concurrency` of one key run at once, and not more
// often than its rate says.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ClaimedJob } from "../../src/core/job.ts";
import { cancel, reapExpired, reapLeases, replay } from "../../src/core/sql/index.ts";
import { differences } from "../support/balance.ts";
import { keyedJobsOf, nameOf, numbered, ofKey, sorted } from "../support/keyed-jobs.ts";
import { createRandom } from "../support/seeded-random.ts";
import { inSession, until } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { wrongKeys } from "../support/turns.ts";
import { complete, times } from "../support/verbs.ts";

const db = useTestDatabase();
const jobs = keyedJobsOf(db, "fairKey");
const { verbs } = jobs;
beforeEach(() => emptyQueue(db.pool));
afterEach(async () => {
  expect(await wrongKeys(db.pool)).toEqual([]);
  expect(await differences(verbs)).toEqual([]);
});

const capOf = (concurrency: number) => ({ policy: { concurrency } });
const count = (key: string, claimed: readonly ClaimedJob[]) =>
  claimed.filter((job) => job.fairKey === key).length;

describe("without a cap", () => {
  test("one key alone fills a whole claim, oldest first", async () => {
    await jobs.put(numbered("a", 1, 150));
    const batch = await verbs.claim({ limit: 100 });
    expect(batch.map(nameOf).join(" ")).toBe(numbered("a", 1, 100));
    expect(await verbs.claim({ limit: 100 })).toHaveLength(50);
  });

  test("keys take turns within a claim and from claim to claim", async () => {
    await jobs.put(numbered("a", 1, 30));
    await jobs.put(numbered("b", 1, 30));
    await jobs.put(numbered("c", 1, 30));
    for (let n = 0; n < 5; n++) {
      const batch = await verbs.claim({ limit: 12 });
      expect(["a", "b", "c"].map((key) => count(key, batch))).toEqual([4, 4, 4]);
    }
  });

  test("keys take turns when a claim takes one job at a time", async () => {
    await jobs.put(numbered("a", 1, 20));
    await jobs.put(numbered("b", 1, 20));
    const order: string[] = [];
    for (let n = 0; n < 20; n++) order.push(nameOf(await verbs.claimOne()));
    const [a, b] = ["a", "b"].map((key) => ofKey(key, order.join(" ")).split(" "));
    expect([a, b]).toEqual([
      numbered("a", 1, a?.length ?? 0).split(" "),
      numbered("b", 1, b?.length ?? 0).split(" "),
    ]);
    expect(Math.abs((a?.length ?? 0) - (b?.length ?? 0))).toBeLessThanOrEqual(2);
  });

  test("all jobs are claimed, once, by many concurrent claimers", async () => {
    for (const key of ["a", "b", "c", "d"]) await jobs.put(numbered(key, 1, 50));
    const claimed: string[] = [];
    const claimAll = async () => {
      for (let idle = 0; idle < 3; ) {
        const batch = await verbs.claim({ limit: 7 });
        claimed.push(...batch.map(nameOf));
        if (batch.length > 0) await verbs.settle(batch, complete);
        idle = batch.length > 0 ? 0 : idle + 1;
      }
    };
    await Promise.all(times(6, claimAll));
    expect(claimed).toHaveLength(200);
    expect(new Set(claimed).size).toBe(200);
  });
});

describe.each([
  ["without a cap", {}],
  ["with a cap", capOf(10)],
])("a tenant's ten jobs %s wait for at most two claims", (_, options) => {
  test("behind a thousand new jobs of another", async () => {
    await jobs.put(numbered("a", 1, 1000));
    await jobs.put(numbered("b", 1, 10));
    const two = [await verbs.claim({ limit: 20, ...options }), await verbs.claim({ limit: 20, ...options })];
    expect(count("b", two.flat())).toBe(10);
  });

  test("behind a thousand jobs of another that is being worked on", async () => {
    await jobs.put(numbered("a", 1, 1000));
    for (let n = 0; n < 5; n++) await verbs.settle(await verbs.claim({ limit: 20, ...options }), complete);
    await jobs.put(numbered("b", 1, 10));
    const two = [await verbs.claim({ limit: 20, ...options }), await verbs.claim({ limit: 20, ...options })];
    expect(count("b", two.flat())).toBe(10);
  });

  test("behind a thousand jobs of fifty others, when a claim has room for a turn of each", async () => {
    for (let n = 0; n < 50; n++) await jobs.put(numbered(`a${n}k`, 1, 20));
    for (let n = 0; n < 3; n++) await verbs.settle(await verbs.claim({ limit: 60, ...options }), complete);
    await jobs.put("b1 b2");
    const two = [];
    for (let n = 0; n < 2; n++) {
      two.push(...(await verbs.claim({ limit: 60, ...options })));
      await verbs.settle(two, complete);
    }
    expect(count("b", two)).toBe(2);
  });
});

describe("the cap of a key", () => {
  test("is exact: as many as it says run, and one more when one ends", async () => {
    await jobs.put(`${numbered("a", 1, 10)} b1`);
    expect(sorted(await jobs.take(capOf(3)))).toBe("a1 a2 a3 b1");
    expect(await jobs.take(capOf(3))).toBe("");
    await jobs.end("a2");
    expect(await jobs.take(capOf(3))).toBe("a4");
    expect(await jobs.take(capOf(3))).toBe("");
  });

  test("holds across 8 concurrent claimers that settle in every way, and nothing is lost", async () => {
    const random = createRandom(7);
    const names = ["a", "b", "c"].map((key) => numbered(key, 1, 40));
    for (const list of names) await jobs.put(list);
    const running = new Map<string, number>();
    let most = 0;
    const completed: string[] = [];
    const work = async () => {
      for (let idle = 0; idle < 20 && completed.length < 120; ) {
        const batch = await verbs.claim({ limit: random.int(1, 5), ...capOf(3) });
        for (const { fairKey } of batch) running.set(fairKey ?? "", (running.get(fairKey ?? "") ?? 0) + 1);
        most = Math.max(most, ...running.values());
        for (const job of batch) {
          running.set(job.fairKey ?? "", (running.get(job.fairKey ?? "") ?? 0) - 1);
          const isDone = random.isLikely(0.7);
          if (isDone) completed.push(nameOf(job));
          await verbs.settle([job], isDone ? complete : { kind: "release" });
        }
        idle = batch.length > 0 ? 0 : idle + 1;
      }
    };
    await Promise.all(times(8, work));
    expect(completed.toSorted()).toEqual(names.join(" ").split(" ").toSorted());
    expect(most).toBe(3);
  });

  test("counts a retry anew: it gives its share back while it waits", async () => {
    await jobs.put("a1 a2 a3");
    await jobs.take(capOf(1));
    await jobs.end("a1", { kind: "retry", message: "busy", retryInSeconds: 60 });
    expect(await jobs.take(capOf(1))).toBe("a2");
    await jobs.makeDue();
    expect(await jobs.take(capOf(1))).toBe("");
    await jobs.end("a2");
    expect(sorted(await jobs.drain(capOf(1)))).toBe("a1 a3");
    expect(jobs.held("a1")).toMatchObject({ attempt: 2 });
  });

  test.each([
    ["a release", { kind: "release" }],
    ["a snooze", { kind: "snooze", retryInSeconds: 60 }],
    ["a death", { kind: "bury", message: "no use" }],
  ] as const)("counts after %s: the share is given back once", async (_, outcome) => {
    await jobs.put(numbered("a", 1, 6));
    await jobs.take(capOf(2));
    await jobs.end("a1", outcome);
    const taken = await jobs.take(capOf(2));
    expect(taken.split(" ")).toHaveLength(1);
    expect(await jobs.take(capOf(2))).toBe("");
  });

  test("counts a lost lease until it is reaped, and no longer", async () => {
    await jobs.put("a1 a2 a3");
    await jobs.take({ ...capOf(1), leaseSeconds: -1 });
    expect(await jobs.take(capOf(1))).toBe("");
    await db.run(reapLeases({ limit: 10 }));
    expect(await jobs.end("a1")).toBe("");
    expect(await jobs.take(capOf(1))).toBe("a2");
    expect(await jobs.take(capOf(1))).toBe("");
    await jobs.makeDue();
    await jobs.end("a2");
    expect(sorted(await jobs.drain(capOf(1)))).toBe("a1 a3");
  });

  test("takes effect at the next claims when it is raised, and when it is taken away", async () => {
    await jobs.put(numbered("a", 1, 20));
    expect(await jobs.take(capOf(2))).toBe("a1 a2");
    expect((await jobs.take(capOf(5))).split(" ")).toHaveLength(3);
    expect(await jobs.take(capOf(5))).toBe("");
    expect((await jobs.take({ policy: {} })).split(" ")).toHaveLength(15);
  });

  test("takes effect when it is raised by a claim that asks for another type", async () => {
    await jobs.put("a1 a2 a3");
    expect(await jobs.take(capOf(1))).toBe("a1");
    expect(await jobs.take({ ...capOf(3), types: ["other"] })).toBe("");
    expect(await jobs.take(capOf(3))).toBe("a2 a3");
  });

  test("takes effect when it is lowered or set: no more start until enough have ended", async () => {
    await jobs.put(numbered("a", 1, 12));
    expect((await jobs.take({ ...capOf(4) })).split(" ")).toHaveLength(4);
    expect(await jobs.take(capOf(2))).toBe("");
    await jobs.end("a1 a2");
    expect(await jobs.take(capOf(2))).toBe("");
    await jobs.end("a3");
    expect(await jobs.take(capOf(2))).toBe("a5");
    await jobs.end("a4 a5");
    expect((await jobs.drain(capOf(2))).split(" ")).toHaveLength(7);
  });

  test("is given back by a job that is cancelled or expires, and none of the others waits for it", async () => {
    await jobs.put("a1");
    await jobs.put("a2", { expiresAt: new Date(Date.now() + 60_000) });
    await jobs.put("a3 a4");
    await jobs.take(capOf(1));
    await db.run(cancel(await jobs.idOf("a3")));
    await verbs.query("update sluice.job set expires_at = now() where expires_at is not null");
    await verbs.query("update sluice.expiry set expires_at = now()");
    await db.run(reapExpired({ limit: 10 }));
    await jobs.end("a1");
    expect(await jobs.drain(capOf(1))).toBe("a4");
    expect([await jobs.statusOf("a2"), await jobs.statusOf("a3")]).toEqual(["dead", "cancelled"]);
  });

  test("does not wait for a cancel that stays open on another job of the key", async () => {
    await jobs.put("a1 a2 a3");
    const id = await jobs.idOf("a1");
    await inSession(db.pool, async (client) => {
      await client.query("begin");
      await client.query("select sluice.cancel($1)", [id]);
      await jobs.take(capOf(2));
      await client.query("rollback");
    });
    const held = await verbs.query<{ id: string }>("select unnest(ids) as id from sluice.lease");
    expect(held.length).toBeLessThanOrEqual(2);
    await verbs.query("update sluice.lease set deadline = now() - interval '1 s'");
    await db.run(reapLeases({ limit: 10 }));
    await jobs.makeDue();
    await jobs.drain(capOf(2));
    await jobs.drain(capOf(2));
    for (const name of ["a1", "a2", "a3"]) expect(await jobs.statusOf(name)).toBe("completed");
  });
});

test("a job that has expired after it was abandoned keeps no other waiting", async () => {
  await jobs.put("a1", { expiresAt: new Date(Date.now() + 60_000) });
  await jobs.take({ ...capOf(1), leaseSeconds: -1 });
  await jobs.put("a2");
  await db.run(reapLeases({ limit: 10 }));
  await verbs.query("update sluice.job set expires_at = now() where expires_at is not null");
  await jobs.makeDue();
  expect(await jobs.take(capOf(1))).toBe("a2");
  await jobs.end("a2");
  expect(await jobs.take(capOf(1))).toBe("");
  expect(await jobs.statusOf("a1")).toBe("dead");
});

test("a dead job of a fair key blocks nothing, and is replayed as a new one", async () => {
  await jobs.put("a1 a2 a3");
  await jobs.take(capOf(1));
  await jobs.end("a1", { kind: "bury", message: "no use" });
  expect(await jobs.take(capOf(1))).toBe("a2");
  await db.run(replay("ann", { id: await jobs.idOf("a1") }));
  await jobs.end("a2");
  expect(await jobs.drain(capOf(1))).toBe("a3 a1");
});

describe("the rate of a key", () => {
  test("is never exceeded, and other keys start beside it", async () => {
    const policy = { secondsApart: 0.4 };
    await jobs.put(`${numbered("a", 1, 4)} b1 c1`);
    const startedAt: number[] = [];
    const others: string[] = [];
    const giveUpAt = Date.now() + 20_000;
    while (startedAt.length < 4 && Date.now() < giveUpAt) {
      const batches = await Promise.all(times(3, () => verbs.claim({ policy, limit: 5 })));
      for (const job of batches.flat()) {
        if (job.fairKey === "a") startedAt.push(await startOf(job));
        else others.push(nameOf(job));
        await verbs.settle([job], complete);
      }
    }
    expect(others.toSorted()).toEqual(["b1", "c1"]);
    expect(startedAt).toHaveLength(4);
    const inOrder = startedAt.toSorted((x, y) => x - y);
    // A claim may wait 0.1 s for another one before it gives the job out.
    for (const [index, at] of inOrder.slice(1).entries())
      expect(at - (inOrder[index] ?? 0)).toBeGreaterThan(0.25);
  });

  test("counts a retry as a start", async () => {
    const policy = { secondsApart: 3600 };
    await jobs.put("a1 a2 b1");
    expect(sorted(await jobs.take({ policy }))).toBe("a1 b1");
    await jobs.end("a1", { kind: "retry", message: "busy", retryInSeconds: 0 });
    expect(await jobs.take({ policy })).toBe("");
    expect(await jobs.statusOf("a1")).toBe("pending");
  });

  test("is kept by a key that has been idle", async () => {
    const policy = { secondsApart: 3600 };
    await jobs.put("a1");
    expect(await jobs.drain({ policy })).toBe("a1");
    await jobs.put("a2");
    expect(await jobs.take({ policy })).toBe("");
  });

  test("goes on after a job that waited for its start is cancelled or has expired", async () => {
    const policy = { secondsApart: 3600 };
    await jobs.put("a1 a2");
    await jobs.put("a3", { expiresAt: new Date(Date.now() + 60_000) });
    await jobs.put("a4");
    expect(await jobs.take({ policy })).toBe("a1");
    await db.run(cancel(await jobs.idOf("a2")));
    await jobs.take({ policy });
    await verbs.query("update sluice.job set expires_at = now() where expires_at is not null");
    await verbs.query("update sluice.expiry set expires_at = now()");
    await db.run(reapExpired({ limit: 10 }));
    await jobs.take({ policy });
    await jobs.makeDue();
    expect(await jobs.take({ policy })).toBe("a4");
  });

  test("lets the next job start when its time has come, without another event", async () => {
    const policy = { secondsApart: 0.3 };
    await jobs.put("a1 a2");
    expect(await jobs.take({ policy })).toBe("a1");
    await until(
      db.pool,
      `select sluice.claim('default', '{echo}', 10, 300, p_policy => '{"on_dead": "block", "seconds_apart": 0.3}')
              -> 'leases' ->> 0 is not null as reached`,
    );
    expect(await jobs.statusOf("a2")).toBe("processing");
  });

  /** In seconds: when the transaction of its claim began. */
  async function startOf(job: ClaimedJob): Promise<number> {
    const [row] = await verbs.query<{ at: number }>(
      "select extract(epoch from started_at)::float8 as at from sluice.jobs where id = $1",
      [job.id],
    );
    return row?.at ?? 0;
  }
});
