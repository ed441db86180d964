// Groups of dead letters: their counts are right after every way into `dead` and out of it, and in every snapshot.
import { beforeEach, describe, expect, test } from "vitest";
import type { NewJob } from "../../src/core/job.ts";
import {
  countDead,
  deleteFlow,
  discard,
  enqueueFlow,
  foldDeaths,
  listDeadGroups,
  listDeadLetters,
  prune,
  reapExpired,
  reapLeases,
  replay,
  replayMany,
  resolveQueues,
} from "../../src/core/sql/index.ts";
import { wrongGroups } from "../support/dead-groups.ts";
import { newJob } from "../support/jobs.ts";
import { rewriteFunction } from "../support/rewrite-function.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { only, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

async function bury(message: string, fields: Partial<NewJob> = {}): Promise<string> {
  const type = fields.type ?? "echo";
  const name = fields.queue ?? "default";
  const id = await queue.enqueueOne(fields);
  const job = await queue.claimOne({ types: [type], queue: name });
  await queue.settle([job], { kind: "bury", message });
  return id;
}

const groups = async (filter: Parameters<typeof listDeadGroups>[0] = { limit: 100 }) =>
  await db.run(listDeadGroups(filter));
const counts = async () =>
  (await groups()).groups.map(({ type, reason, pattern, count }) => [type, reason, pattern, count]);
const fold = () => db.run(foldDeaths({ limit: 100 }));

describe("groups", () => {
  test("have one entry for each type, reason and kind of error, the largest first", async () => {
    await bury("user 1 is unknown");
    const second = await bury("user 2 is unknown\nat line 3");
    await bury("no route");
    await bury("user 3 is unknown", { type: "other" });
    const { groups: listed, totalGroups, totalDead } = await groups();
    expect(listed[0]).toMatchObject({
      ...{ type: "echo", reason: "fatal", count: 2, newestId: second, pattern: "user ‹n› is unknown" },
      error: "user 2 is unknown\nat line 3",
    });
    expect(listed[0]?.hours).toEqual([...times(23, () => 0), 2]);
    expect(listed.slice(1).map(({ type, pattern, count }) => [type, pattern, count])).toEqual(
      expect.arrayContaining([
        ["echo", "no route", 1],
        ["other", "user ‹n› is unknown", 1],
      ]),
    );
    expect([totalGroups, totalDead]).toEqual([3, 4]);
    expect(await fold()).toBe(4);
    expect(await groups()).toEqual({ groups: listed, totalGroups, totalDead });
  });

  test("can be filtered by type, reason and queue, and the totals are of what matches", async () => {
    await bury("a");
    await bury("b", { queue: "heavy" });
    await bury("b", { type: "other" });
    const listed = async (filter: object) =>
      (await groups({ ...filter, limit: 1 })).groups.map(({ type, pattern }) => [type, pattern]);
    expect(await listed({ type: "other" })).toEqual([["other", "b"]]);
    expect(await listed({ queue: "heavy" })).toEqual([["echo", "b"]]);
    expect(await listed({ reason: "expired" })).toEqual([]);
    expect(await groups({ type: "echo", limit: 1 })).toMatchObject({ totalGroups: 2, totalDead: 2 });
  });

  test("are none when nothing is dead", async () => {
    expect(await groups()).toEqual({ groups: [], totalGroups: 0, totalDead: 0 });
  });

  test("add up the queues and priorities of a type", async () => {
    await bury("a", { queue: "heavy", priority: 9 });
    const newest = await bury("a");
    expect((await groups()).groups).toMatchObject([{ count: 2, newestId: newest }]);
  });

  test("forget a group that is empty, and begin it anew with the next death", async () => {
    const id = await bury("a");
    const [first] = (await groups()).groups;
    await db.run(replay("ann", { id }));
    expect(await counts()).toEqual([]);
    await fold();
    expect(await queue.count("dead_group")).toBe(0);
    await queue.settle([await queue.claimOne()], { kind: "bury", message: "a" });
    const [again] = (await groups()).groups;
    expect(again).toMatchObject({ count: 1, fingerprint: first?.fingerprint });
    expect(again?.firstAt.getTime()).toBeGreaterThan(first?.firstAt.getTime() ?? 0);
    expect(again?.hours.at(-1)).toBe(2); // a replay takes no death back
  });

  test("keep the deaths of the last 24 hours", async () => {
    await bury("a");
    await queue.query("update sluice.death set hour = hour - interval '23 hours'");
    await fold();
    expect((await groups()).groups[0]?.hours).toEqual([1, ...times(23, () => 0)]);
    await queue.query("update sluice.dead_hour set hour = hour - interval '1 hour'");
    expect((await groups()).groups[0]?.hours).toEqual(times(24, () => 0));
    await queue.query("update sluice.dead_hour set hour = hour - interval '2 hours'");
    await bury("b");
    await fold();
    expect(await queue.count("dead_hour")).toBe(1);
  });
});

describe("a group's count follows", () => {
  const exhaust = async () => {
    const id = await queue.enqueueOne({ maxAttempts: 1 });
    await queue.settle([await queue.claimOne()], { kind: "retry", message: "busy 7" });
    return id;
  };

  test("deaths by the last attempt, by a lost lease, and by expiry", async () => {
    await exhaust();
    await queue.enqueueOne({ maxAttempts: 1 });
    await queue.claimOne({ leaseSeconds: -1 });
    await db.run(reapLeases({ limit: 10 }));
    await queue.enqueueOne({ expiresAt: new Date(Date.now() - 1000) });
    await db.run(reapExpired({ limit: 10 }));
    await queue.enqueueOne({ expiresAt: new Date(Date.now() - 1000) });
    await queue.claim(); // it meets an expired job
    expect((await counts()).toSorted()).toEqual([
      ["echo", "abandoned", "the lease ran out", 1],
      ["echo", "exhausted", "busy ‹n›", 1],
      ["echo", "expired", null, 2],
    ]);
    expect(await wrongGroups(queue)).toEqual([]);
  });

  test("replays, discards and retention", async () => {
    const ids = [await exhaust(), await exhaust(), await exhaust(), await exhaust()];
    await db.run(replay("ann", { id: ids[0] ?? "" }));
    await db.run(discard("ann", { id: ids[1] ?? "" }));
    expect(await counts()).toEqual([["echo", "exhausted", "busy ‹n›", 2]]);
    await fold();
    await db.run(replayMany("ann", { type: "echo", count: 1 }));
    await queue.query("select sluice.prune(100, interval '0', interval '-1 hour')");
    expect(await queue.query("select from sluice.closed where status = 'dead'")).toEqual([]);
    expect(await counts()).toEqual([]);
    expect(await wrongGroups(queue)).toEqual([]);
  });

  test("jobs that die of a blocker, come back with it, and go with their flow", async () => {
    const { flowId } = await db.run(
      enqueueFlow([
        { ref: "a", job: newJob({}), after: [] },
        { ref: "b", job: newJob({}), after: ["a"] },
      ]),
    );
    const kill = async () => {
      await queue.settle([await queue.claimOne()], { kind: "bury", message: "no" });
      await db.run(resolveQueues());
      await queue.claim();
    };
    await kill();
    expect((await counts()).toSorted()).toEqual([
      ["echo", "blocker", null, 1],
      ["echo", "fatal", "no", 1],
    ]);
    const [dead] = await queue.query<{ id: string }>("select id from sluice.closed where reason = 'fatal'");
    await db.run(replay("ann", { id: dead?.id ?? "" }));
    await db.run(resolveQueues());
    expect(await queue.query("select from sluice.closed where status = 'dead'")).toEqual([]);
    expect(await counts()).toEqual([]);
    await kill();
    expect(await counts()).toHaveLength(2);
    expect(await db.run(deleteFlow("ann", flowId))).toBe("deleted");
    expect(await counts()).toEqual([]);
    expect(await wrongGroups(queue)).toEqual([]);
  });

  test("dead letters from before the groups, which the reap round marks", async () => {
    await exhaust();
    await queue.enqueueOne({ expiresAt: new Date(Date.now() - 1000) });
    await db.run(reapExpired({ limit: 10 }));
    const before = await counts();
    await queue.query("truncate sluice.death, sluice.dead_group, sluice.dead_hour");
    await queue.query("alter table sluice.closed disable trigger user");
    await queue.query("update sluice.closed set fingerprint = null");
    await queue.query("alter table sluice.closed enable trigger user");
    expect(await counts()).toEqual([]);
    expect((await db.run(countDead({ type: "echo" }))).dead).toBe(2);
    expect(await db.run(listDeadLetters({ type: "echo", limit: 10 }))).toHaveLength(2);
    await fold();
    expect(await counts()).toEqual(before);
    expect((await db.run(countDead({ type: "echo" }))).dead).toBe(2);
    expect(await wrongGroups(queue)).toEqual([]);
  });
});

test("a replay that is rolled back changes no count", async () => {
  const id = await bury("a");
  await queue.query(`begin; select sluice.replay('ann', '${id}'); rollback`);
  expect(await counts()).toEqual([["echo", "fatal", "a", 1]]);
});

describe("deaths, replays, discards, folds and retention at once", () => {
  async function churn(): Promise<object[]> {
    const found: object[] = [];
    const messages = ["a 1", "b", "c"];
    const killer = async (n: number) => {
      for (let round = 0; round < 12; round++) {
        await queue.enqueue(...times(10, () => ({ maxAttempts: 1 })));
        const jobs = await queue.claim({ limit: 10 });
        if (jobs.length > 0)
          await queue.settle(jobs, { kind: "bury", message: messages[(n + round) % 3] ?? "" });
      }
    };
    const reviver = async () => {
      for (let round = 0; round < 12; round++) await db.run(replayMany("ann", { type: "echo", count: 7 }));
    };
    const discarder = async () => {
      for (let round = 0; round < 20; round++) {
        const [dead] = await db.run(listDeadLetters({ limit: 1 }));
        if (dead) await db.run(discard("ann", { id: dead.job.id }));
      }
    };
    const upkeep = async () => {
      for (let round = 0; round < 15; round++) {
        await fold();
        if (round % 5 === 4) await db.run(prune({ limit: 5 }));
        found.push(...(await wrongGroups(queue)));
      }
    };
    await Promise.all([
      ...[killer(0), killer(1), killer(2), reviver(), reviver(), discarder(), upkeep()],
      queue.query("select sluice.prune(3, interval '0', interval '-1 hour')"),
    ]);
    return [...found, ...(await wrongGroups(queue))];
  }

  test("leave counts that are right in every snapshot and at the end", async () => {
    expect(await churn()).toEqual([]);
    await fold();
    expect(await wrongGroups(queue)).toEqual([]);
    const { totalDead } = await groups();
    expect(totalDead).toBe(
      only(
        await queue.query<{ n: number }>(
          "select count(*)::int as n from sluice.closed where status = 'dead'",
        ),
      ).n,
    );
  });

  test("do not, if discards are forgotten", async () => {
    const [from, to] = ["having sum(change) <> 0", "having sum(change) > 0"];
    await rewriteFunction(db.pool, { name: "note_deaths", from, to });
    expect(await churn()).not.toEqual([]);
    await rewriteFunction(db.pool, { name: "note_deaths", from: to, to: from });
  });
});

describe("the list of dead letters", () => {
  const listed = async (filter: Partial<Parameters<typeof listDeadLetters>[0]> = {}) =>
    (await db.run(listDeadLetters({ limit: 100, ...filter }))).map(({ job }) => job.id);

  test("has the last death first, and can be filtered", async () => {
    const late = await queue.enqueueOne();
    const held = await queue.claimOne();
    const a = await bury("a");
    const b = await bury("b", { queue: "heavy" });
    const between = new Date();
    await queue.query("select pg_sleep(0.01)");
    await queue.settle([held], { kind: "bury", message: "a" });
    expect(await listed()).toEqual([late, b, a]);
    expect(await listed({ queue: "heavy" })).toEqual([b]);
    expect(await listed({ until: between })).toEqual([b, a]);
    expect(await listed({ since: between })).toEqual([late]);
    const [group] = (await groups({ queue: "default", limit: 1 })).groups;
    expect(await listed({ fingerprint: group?.fingerprint })).toEqual([late, a]);
    expect(await listed({ fingerprint: group?.fingerprint, reason: "expired" })).toEqual([]);
  });

  test("has pages without a gap or an overlap, by one group or by many", async () => {
    for (let n = 0; n < 3; n++) {
      await queue.enqueue(...times(4, () => ({})));
      await queue.settle(await queue.claim(), { kind: "bury", message: `kind ${"abc"[n]}` });
    }
    const all = await listed();
    expect(all).toHaveLength(12);
    const paged: string[] = [];
    for (let before: { diedMicros: string; jobId: string } | undefined; ; ) {
      const page = await db.run(listDeadLetters({ type: "echo", limit: 5, before }));
      paged.push(...page.map(({ job }) => job.id));
      before = page.at(-1)?.position;
      if (page.length < 5) break;
    }
    expect(paged).toEqual(all);
  });
});
