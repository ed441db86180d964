// A day is dropped while the queue is in use: no statement fails, and none waits for long.
import { beforeEach, expect, test } from "vitest";
import { addPartitions, dropOldestDay } from "../../src/core/sql/index.ts";
import { differences } from "../support/balance.ts";
import { addPastDay, makeOlder } from "../support/old-jobs.ts";
import { inSession } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { startTraffic } from "../support/traffic.ts";
import { only, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

/** Postgres looks for deadlocks after a second of waiting. A drop gives up after three waits of 50 ms at most. */
const longestMs = 800;
/** In one round. The next reap round starts two minutes later. */
const triesAtMost = 20;

const days = 4;
const sum = (numbers: readonly number[]) => numbers.reduce((total, n) => total + n, 0);

async function dropUntilDone(): Promise<string[]> {
  const dropped: string[] = [];
  for (let n = 0; n < triesAtMost && dropped.length < days; n++) {
    const day = await db.run(dropOldestDay());
    if (day) dropped.push(day);
  }
  return dropped;
}

test("days are dropped under load without an error or a long wait", async () => {
  const made = [];
  for (const n of times(days, (n) => 8 + days - n)) {
    made.push(await addPastDay(queue, n));
    await makeOlder(queue, await queue.enqueueOne(), n);
  }
  const traffic = startTraffic(db, { connections: 4 });
  await traffic.more(200);
  const dropped = await dropUntilDone();
  await traffic.more(50);
  await traffic.stop();

  expect(traffic.errors).toEqual([]);
  expect(dropped).toEqual(made);
  expect(traffic.longestMs).toBeLessThan(longestMs);
  expect(await differences(queue)).toEqual([]);
});

test("days are added under load without an error or a long wait", async () => {
  const traffic = startTraffic(db, { connections: 4 });
  await traffic.more(200);
  const added: number[] = [];
  for (let n = 0; n < triesAtMost && sum(added) < 4; n++)
    added.push(only(await queue.query<{ n: number }>("select sluice.add_partitions(11) as n")).n);
  await traffic.stop();
  expect(traffic.errors).toEqual([]);
  expect(sum(added)).toBe(4);
  expect(traffic.longestMs).toBeLessThan(longestMs);
});

test("an open reader keeps the day from being dropped, and makes no other statement wait", async () => {
  const day = await addPastDay(queue, 9);
  await inSession(db.pool, async (reader) => {
    await reader.query("begin");
    await reader.query("select count(*) from sluice.jobs");
    const traffic = startTraffic(db, { connections: 2 });
    await traffic.more(100);
    for (let round = 0; round < 3; round++) {
      expect(await db.run(dropOldestDay())).toBe(null);
      expect(await db.run(addPartitions())).toBe(0);
    }
    await traffic.stop();
    expect(traffic.errors).toEqual([]);
    expect(traffic.longestMs).toBeLessThan(longestMs);
  });
  expect(await db.run(dropOldestDay())).toEqual(day);
});
