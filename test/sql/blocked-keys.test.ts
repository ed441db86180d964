// blocked keys: partition keys that stand still behind a dead job are listed and counted.
import { beforeEach, describe, expect, test } from "vitest";
import type { NewJob } from "../../src/core/job.ts";
import type { BlockedKeyPosition } from "../../src/core/sql/blocked-keys.ts";
import { cancel, discard, listBlockedKeys, reapExpired, replay, snapshot } from "../../src/core/sql/index.ts";
import { measure, scansOf, watchStatements } from "../support/explain.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { only, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const list = async (name = "default", limit = 100) => await db.run(listBlockedKeys(name, { limit }));
const keysOf = (listed: { partitionKey: string }[]) => listed.map(({ partitionKey }) => partitionKey);
/** Makes the key's first job dead, some minutes ago. Returns its id. */
async function block(
  partitionKey: string,
  { minutes = 0, ...fields }: Partial<NewJob> & { minutes?: number } = {},
): Promise<string> {
  const id = await queue.buryOne({ partitionKey, ...fields });
  await queue.query("update sluice.closed set closed_at = now() - make_interval(mins => $2) where id = $1", [
    ...[id, minutes],
  ]);
  return id;
}
const blockedOf = async (name = "default") =>
  (await db.run(snapshot())).blockedKeys.find((entry) => entry.queue === name);

describe("the list", () => {
  test("shows a blocked key with its dead job, the error and what waits behind it", async () => {
    const id = await block("customer 7");
    await queue.enqueue({ partitionKey: "customer 7" }, { partitionKey: "customer 7", type: "other" });
    await queue.enqueue({ partitionKey: "customer 7", delaySeconds: 60 }, { partitionKey: "customer 8" });
    const { bucket, since, position, ...blocked } = only(await list());
    expect(blocked).toEqual({
      ...{ partitionKey: "customer 7", jobId: id, type: "echo", deadReason: "fatal", error: "no use" },
      ...{ waiting: 2, waitingIsMore: false },
    });
    expect([bucket]).toEqual(
      (
        await queue.query<{ bucket: number }>(
          "select sluice.bucket_of(sluice.key_of('default', 'ordered', 'customer 7')) as bucket",
        )
      ).map((row) => row.bucket),
    );
    expect(Date.now() - since.getTime()).toBeLessThan(10_000);
    expect(position.jobId).toBe(id);
  });

  test("has the longest blocked key first, and its pages have no gap and no overlap", async () => {
    for (const [key, minutes, type] of [
      ["a", 1, "echo"],
      ["b", 3, "other"],
      ["c", 2, "echo"],
      ["d", 5, "other"],
      ["e", 4, "echo"],
    ] as const)
      await block(key, { minutes, type });
    expect(keysOf(await list())).toEqual(["d", "e", "b", "c", "a"]);
    const pages: string[][] = [];
    let after: BlockedKeyPosition | undefined;
    do {
      const page = await db.run(listBlockedKeys("default", { after, limit: 2 }));
      pages.push(keysOf(page));
      after = page[1]?.position;
    } while (after);
    expect(pages).toEqual([["d", "e"], ["b", "c"], ["a"]]);
  });

  test("goes on after keys that were blocked in the same moment", async () => {
    for (const key of ["a", "b", "c"]) await block(key);
    await queue.query("update sluice.closed set closed_at = '2026-01-02 03:04:05.678901+00'");
    const first = await list("default", 2);
    const rest = await db.run(listBlockedKeys("default", { after: first[1]?.position, limit: 2 }));
    expect(keysOf([...first, ...rest])).toEqual(["a", "b", "c"]);
  });

  test("counts the waiting jobs up to a bound, and says if there are more", async () => {
    await block("full");
    await queue.enqueue(...times(1001, () => ({ partitionKey: "full" })));
    expect(only(await list())).toMatchObject({ waiting: 1000, waitingIsMore: true });
    const [row] = await queue.query<{ id: string }>(
      "select id from sluice.ready where returned is null limit 1",
    );
    await db.run(cancel(row?.id ?? ""));
    expect(only(await list())).toMatchObject({ waiting: 1000, waitingIsMore: false });
  });

  test("does not show keys of other queues, dead jobs without a key, or jobs of a fair key", async () => {
    await queue.buryOne();
    await block("a", { queue: "other" });
    await queue.buryOne({ fairKey: "tenant" });
    expect(await list()).toEqual([]);
    expect(keysOf(await list("other"))).toEqual(["a"]);
  });

  test("loses a key when its dead job is replayed or discarded, or when dead jobs pass", async () => {
    const [a = "", b = ""] = [await block("a"), await block("b"), await block("c")];
    await db.run(replay("ann", { id: a }));
    expect(keysOf(await list())).toEqual(["b", "c"]);
    await db.run(discard("ann", { id: b }));
    expect(keysOf(await list())).toEqual(["c"]);
    await queue.claim({ types: ["none"], policy: { onDead: "pass" } });
    expect(await list()).toEqual([]);
  });

  test("has no error for a job that expired before its first attempt", async () => {
    await queue.enqueueOne({ partitionKey: "a", expiresAt: new Date(Date.now() + 60_000) });
    await queue.settle([await queue.claimOne()], { kind: "release" }); // it has the turn of its key
    await queue.query("update sluice.expiry set expires_at = now()");
    await queue.query("update sluice.job set expires_at = now()");
    await db.run(reapExpired({ limit: 10 }));
    expect(only(await list())).toMatchObject({ partitionKey: "a", deadReason: "expired", error: null });
  });
});

describe("the snapshot", () => {
  test("counts the blocked keys of each queue, and names the one that is blocked the longest", async () => {
    await queue.enqueue({ partitionKey: "a", queue: "idle" }, { queue: "plain" });
    await block("a", { minutes: 5 });
    const longest = await block("b", { minutes: 20, type: "other" });
    await block("c");
    expect(await blockedOf()).toMatchObject({ keys: 3, jobId: longest });
    expect(Date.now() - ((await blockedOf())?.since?.getTime() ?? 0)).toBeCloseTo(20 * 60_000, -4);
    expect(await blockedOf("idle")).toEqual({ queue: "idle", keys: 0, since: null, jobId: null });
    expect(await blockedOf("plain")).toBeUndefined();
  });
});

test("with 5,000 blocked keys, a page and the snapshot read a bounded part of an index", async () => {
  await block("a");
  await queue.query(`
    insert into sluice.closed (id, status, reason, closed_at, lane, attempt, abandonments, key, place)
    select sluice.new_id(), 'dead', 'fatal', now(), lane, 1, 0, n, n
    from sluice.closed cross join generate_series(1, 5000) as n`);
  await queue.query(`
    insert into sluice.job (id, lane, max_attempts, partition_key, payload)
    select id, lane, 5, 'key ' || place, '{}' from sluice.closed where place = key`);
  const client = await db.pool.connect();
  const { take } = await watchStatements(client);
  const page = "select * from sluice.blocked_keys('default', null, null, 20)";
  await client.query(page); // so that the catalogue is cached
  take();
  const { buffers } = await measure(client, page);
  const scans = scansOf(take());
  client.release();
  expect(scans).toContainEqual({ relation: "closed", index: "closed_blocking" });
  expect(scans.filter(({ index }) => index === null)).toEqual([]);
  expect(buffers).toBeLessThan(500);
  expect(await blockedOf()).toMatchObject({ keys: 5001 });
});
