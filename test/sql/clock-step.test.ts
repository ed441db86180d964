// The database's clock steps back, and no job is lost. A test cannot move the clock, so it moves the cursors ahead, which is
// what a step back leaves behind. test/clock/ does the same with a real clock.
import type pg from "pg";
import { beforeEach, describe, expect, test } from "vitest";
import {
  advanceCursors,
  advanceDeadRuns,
  backlog,
  snapshot,
  startDeadRun,
} from "../../src/core/sql/index.ts";
import { differences } from "../support/balance.ts";
import { until } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, only, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const advance = () => db.run(advanceCursors());

/** Uses the queue until its cursors have reached the clock. Then the clock steps back. */
async function stepBack(seconds: number): Promise<void> {
  await queue.enqueue({}, { delaySeconds: 0.001 });
  await untilDue();
  await queue.settle(await queue.claim(), complete);
  for (let n = 0; n < 3; n++) await advance();
  await queue.query(
    `update sluice.cursors set at = at + make_interval(secs => $1), passable_at = passable_at + make_interval(secs => $1),
       scheduled_cursor = scheduled_cursor + make_interval(secs => $1)`,
    [seconds],
  );
}
const untilDue = () =>
  until(db.pool, "select count(*) = 0 as reached from sluice.scheduled where run_at > clock_timestamp()");
const catchUp = () =>
  queue.query(`
    update sluice.cursors set at = clock_timestamp(), passable_at = clock_timestamp(), scheduled_cursor = clock_timestamp()`);

describe("after the clock has stepped back", () => {
  test.each([10, 3600])(
    "by %i s, delayed jobs and retries are claimed when they are due",
    async (seconds) => {
      await queue.enqueueOne();
      const failing = await queue.claimOne();
      await stepBack(seconds);
      const delayed = await queue.enqueueOne({ delaySeconds: 0.001 });
      await queue.settle([failing], { kind: "retry", message: "no", retryInSeconds: 0.001 });
      await untilDue();
      const claimed = await queue.claim();
      expect(claimed.map(({ id }) => id).toSorted()).toEqual([failing.id, delayed].toSorted());
      expect(await differences(queue)).toEqual([]);
    },
  );

  test("they are also claimed when the clock has caught up before the next claim", async () => {
    await stepBack(10);
    const id = await queue.enqueueOne({ delaySeconds: 0.001 });
    await untilDue();
    await catchUp();
    await advance();
    expect(await queue.claim()).toMatchObject([{ id }]);
    expect(await queue.count("cursor_gap")).toBe(0);
    expect(await differences(queue)).toEqual([]);
  });

  test("a job that is not due yet waits for its time, and the cursor moves back to it", async () => {
    await stepBack(3600);
    const soon = await queue.enqueueOne({ delaySeconds: 60 });
    await advance();
    expect(await queue.claim()).toEqual([]);
    expect(await queue.find(soon)).toMatchObject({ status: "pending" });
    await queue.query("update sluice.scheduled set run_at = run_at - interval '59.9 s'");
    for (let n = 0; n < 3; n++) await advance();
    await untilDue();
    expect(await queue.claim()).toMatchObject([{ id: soon }]);
  });

  test("all jobs of a replay that spreads them over time are claimed", async () => {
    const ids = [await queue.buryOne(), await queue.buryOne()];
    await stepBack(10);
    await db.run(
      startDeadRun("ann", { action: "replay", until: new Date(Date.now() + 60_000), perMinute: 60_000 }),
    );
    await db.run(advanceDeadRuns({ seconds: 1 }));
    await untilDue();
    expect((await queue.claim()).map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  });

  test("the backlog and the snapshot show the waiting job", async () => {
    await stepBack(10);
    await queue.enqueueOne({ delaySeconds: 0.001 });
    await untilDue();
    expect(await db.run(backlog({ types: ["echo"], cap: 10 }))).toEqual([{ queue: "default", due: 1 }]);
    const { groups } = await db.run(snapshot());
    expect(groups[0]?.oldestDueSeconds).toBeGreaterThan(0);
  });

  test("writers record no gap once the cursors have moved back with the clock", async () => {
    await stepBack(3600);
    await queue.enqueueOne({ delaySeconds: 60 });
    expect(await queue.count("cursor_gap")).toBe(1);
    await advance();
    const id = await queue.enqueueOne({ delaySeconds: 0.001 });
    expect(await queue.count("cursor_gap")).toBe(0);
    await until(db.pool, "select min(run_at) < clock_timestamp() as reached from sluice.scheduled");
    expect(await queue.claim()).toMatchObject([{ id }]);
  });
});

describe("the job of a transaction that is open while cursors move", () => {
  async function openWriter(): Promise<pg.PoolClient> {
    const client = await db.pool.connect();
    await client.query("begin");
    await client.query("select sluice.enqueue('echo', delay_seconds => 0.001)");
    return client;
  }
  const end = async (client: pg.PoolClient) => {
    await client.query("commit");
    client.release();
  };

  test.each([0, 1, 2, 3, 4])(
    "is claimed when the transaction commits after %i advances",
    async (advances) => {
      await stepBack(10);
      const writer = await openWriter();
      for (let n = 0; n < advances; n++) await advance();
      await end(writer);
      await untilDue();
      await advance();
      expect(await queue.claim()).toHaveLength(1);
    },
  );

  test("is claimed when the transaction did not see cursors that another one was moving", async () => {
    await stepBack(0);
    // As text: a Date has only milliseconds, so its time might be before the cursors.
    const earlier = only(await queue.query<{ at: string }>("select clock_timestamp()::text as at")).at;
    const mover = await db.pool.connect();
    await mover.query("begin");
    await mover.query("select sluice.advance_cursors()");
    const writer = await openWriter();
    await writer.query("update sluice.scheduled set run_at = $1", [earlier]); // as after a step back
    await end(mover);
    for (let n = 0; n < 3; n++) await advance();
    await end(writer);
    await advance();
    expect(await queue.claim()).toHaveLength(1);
  });

  test("is claimed when the clock steps back after the transaction has read the cursors", async () => {
    await stepBack(0);
    const writer = await openWriter();
    await queue.query("update sluice.cursors set at = at + interval '10 s'");
    for (let n = 0; n < 3; n++) await advance();
    await end(writer);
    await untilDue();
    await advance();
    expect(await queue.claim()).toHaveLength(1);
  });
});

test("every function that writes to `scheduled` calls keep_reachable", async () => {
  const writers = await queue.query<{ name: string; is_careful: boolean }>(`
    select proname as name, prosrc like '%keep_reachable(%' as is_careful
    from pg_proc
    where pronamespace = 'sluice'::regnamespace and prosrc ~ '(insert into|update) scheduled'
    order by 1`);
  expect(writers).toEqual(
    [
      ...["add_waits", "fail_jobs", "insert_times", "move_slots", "pace_shares", "plan_slots"],
      ...["promote_passed", "release_waits", "revive", "wait_anew"],
    ].map((name) => ({ name, is_careful: true })),
  );
});
