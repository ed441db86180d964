// API keys: they are stored as a hash and found until they are revoked, and every change is audited.
import { beforeEach, describe, expect, test } from "vitest";
import type { NewKey } from "../../src/core/key.ts";
import { addKey, findKey, listKeys, revokeKey } from "../../src/core/sql/index.ts";
import { newestAudit } from "../support/audit.ts";
import { inSession, sqlState } from "../support/sessions.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { only, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => queue.query("delete from sluice.api_key"));

const keyHash = "ab".repeat(32);
const unknownId = "01900000-0000-7000-8000-000000000000";
const add = async (fields: Partial<NewKey> & { keyHash?: string } = {}) =>
  await db.run(
    addKey("ann", {
      name: "shop",
      role: "producer",
      jobTypes: null,
      rateLimitPerSecond: 1000,
      keyHash,
      ...fields,
    }),
  );
/** The version of the row. It changes with every write. */
const versionOf = async (id: string) =>
  only(await queue.query("select ctid::text, xmin::text from sluice.api_key where id = $1", [id]));

describe("add", () => {
  test("stores a key that is found by its hash, with its rights", async () => {
    const key = await add({ jobTypes: ["echo"], rateLimitPerSecond: 7 });
    expect(key).toMatchObject({ name: "shop", role: "producer", jobTypes: ["echo"], rateLimitPerSecond: 7 });
    expect(await db.run(findKey(keyHash))).toEqual({ ...key, lastUsedAt: null });
    expect(await db.run(findKey("cd".repeat(32)))).toBeUndefined();
  });

  test("writes the key to the audit, without its hash", async () => {
    const { id } = await add();
    const entry = await newestAudit(db);
    expect(entry).toMatchObject({ actor: "ann", action: "add key", target: `key ${id}`, before: null });
    expect(entry.after).toMatchObject({ id, name: "shop", role: "producer", revoked_at: null });
    expect(JSON.stringify(entry)).not.toContain(keyHash);
  });

  test.each<[string, Partial<NewKey> & { keyHash?: string }, string]>([
    ["a role that there is not", { role: "owner" as NewKey["role"] }, "23514"],
    ["types for a role that enqueues nothing", { role: "worker", jobTypes: ["echo"] }, "23514"],
    ["a hash that is none", { keyHash: "ab" }, "23514"],
    ["no calls at all", { rateLimitPerSecond: 0 }, "23514"],
  ])("refuses %s, and does not audit it", async (_, fields, state) => {
    const audited = await queue.count("audit");
    expect(await sqlState(add(fields))).toBe(state);
    expect(await queue.count("audit")).toBe(audited);
  });

  test("refuses a second key with the same hash", async () => {
    await add();
    expect(await sqlState(add({ name: "another" }))).toBe("23505");
  });
});

describe("find", () => {
  test("writes the time of use once a minute, not at every call", async () => {
    const { id } = await add();
    await db.run(findKey(keyHash));
    const version = await versionOf(id);
    const used = await db.run(findKey(keyHash));
    expect(used?.lastUsedAt).toBeInstanceOf(Date);
    await Promise.all(times(20, () => db.run(findKey(keyHash))));
    expect(await versionOf(id)).toEqual(version);
    await queue.query("update sluice.api_key set last_used_at = now() - interval '61 seconds'");
    await db.run(findKey(keyHash));
    const again = await db.run(findKey(keyHash));
    expect(again?.lastUsedAt?.getTime()).toBeGreaterThanOrEqual(used?.lastUsedAt?.getTime() ?? Infinity);
  });

  test("does not wait for a transaction that locks the key's row", async () => {
    const { id } = await add();
    await inSession(db.pool, async (client) => {
      await client.query("begin");
      await client.query("select from sluice.api_key where id = $1 for update", [id]);
      expect(await db.run(findKey(keyHash))).toMatchObject({ id, lastUsedAt: null });
    });
  });
});

describe("revoke", () => {
  test("makes a key unfindable, and the audit says who did it", async () => {
    const { id } = await add();
    expect(await db.run(revokeKey("bob", id))).toMatchObject({ id, revokedAt: expect.any(Date) });
    expect(await db.run(findKey(keyHash))).toBeUndefined();
    expect(await newestAudit(db)).toMatchObject({
      actor: "bob",
      action: "revoke key",
      target: `key ${id}`,
      before: { revoked_at: null },
      after: { revoked_at: expect.any(String) },
    });
  });

  test("keeps the first time when it is called twice", async () => {
    const { id } = await add();
    const first = await db.run(revokeKey("bob", id));
    expect(await db.run(revokeKey("eve", id))).toEqual(first);
  });

  test("answers with no row for a key that does not exist, and audits nothing", async () => {
    const audited = await queue.count("audit");
    expect(await db.run(revokeKey("bob", unknownId))).toBeUndefined();
    expect(await queue.count("audit")).toBe(audited);
  });
});

test("keys are listed newest first, revoked ones last", async () => {
  const ids: string[] = [];
  for (const n of times(4, (index) => index)) ids.push((await add({ keyHash: `0${n}`.repeat(32) })).id);
  const [first, second, third, fourth] = ids;
  await db.run(revokeKey("bob", fourth ?? ""));
  expect((await db.run(listKeys({ limit: 10 }))).map((key) => key.id)).toEqual([
    third,
    second,
    first,
    fourth,
  ]);
  expect(await db.run(listKeys({ limit: 1 }))).toHaveLength(1);
});
