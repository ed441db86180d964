// What is known of keys that nobody uses is removed. Keys in use keep theirs.
import { beforeEach, expect, test } from "vitest";
import { keyedJobsOf, numbered } from "../support/keyed-jobs.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { wrongKeys } from "../support/turns.ts";

const db = useTestDatabase();
const jobs = keyedJobsOf(db);
const { verbs } = jobs;

beforeEach(() => emptyQueue(db.pool));

const pruneKeys = () => verbs.query("select sluice.prune_keys(1000, 0)");

/** The state of a key is written when one of its jobs does not complete. */
const putBack = async (names: string) => {
  await jobs.put(names);
  await jobs.end(await jobs.take({ run: 1 }), { kind: "release" });
};

test("a key whose jobs have all ended is forgotten, and works again afterwards", async () => {
  await putBack("a1 b1 c1");
  await jobs.drain();
  await jobs.drain(); // takes the turns that came back
  expect(await verbs.count("key_state")).toBe(3);
  await pruneKeys();
  expect(await verbs.count("key_state")).toBe(0);
  await jobs.put("a2 a3");
  expect(await jobs.drain()).toBe("a2 a3");
  expect(await wrongKeys(db.pool)).toEqual([]);
});

test("a key whose turn is out is kept", async () => {
  await putBack(numbered("a", 1, 3));
  await jobs.take({ run: 1 });
  await pruneKeys();
  expect(await verbs.count("key_state")).toBe(1);
  await jobs.end("a1");
  expect(await jobs.drain()).toBe("a2 a3");
});

test("nothing is removed while a claim of the queue is open", async () => {
  await putBack("a1");
  await jobs.drain();
  await jobs.drain();
  const client = await db.pool.connect();
  await client.query("begin");
  await client.query("select sluice.claim('default', '{echo}', 1, 60)");
  await pruneKeys();
  expect(await verbs.count("key_state")).toBe(1);
  await client.query("rollback");
  client.release();
});
