// next due: each kind of thing that becomes due is announced, and nothing that is due falls between two answers.
import { beforeEach, describe, expect, test } from "vitest";
import { claim, look, nextDue, openBreaker, pause, recordRoundAndLook } from "../../src/core/sql/index.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const ask = (upkeep = true) => db.run(look({ types: [{ type: "echo" }], cap: 10, upkeep, seconds: 1 }));
const near = (seconds: number) => expect.closeTo(seconds * 1000, -3);

describe("in an empty queue", () => {
  test("nothing is due", async () => {
    expect(await ask()).toEqual({ waiting: [], hasDueRuns: false, dueMs: null, upkeepMs: null });
    expect(await db.run(nextDue([]))).toEqual({ dueMs: null, upkeepMs: null });
  });
});

describe("is announced:", () => {
  test("the earliest scheduled job, by the record of a round too", async () => {
    await queue.enqueue({ delaySeconds: 500 }, { delaySeconds: 70 }, { delaySeconds: 90 });
    expect(await ask()).toMatchObject({ waiting: [], dueMs: near(70) });
    const record = recordRoundAndLook({ kind: "nudge", ms: 1, report: {} }, []);
    expect((await db.run(record)).dueMs).toEqual(near(70));
  });

  test("a retry", async () => {
    await queue.enqueue({});
    await queue.settle([await queue.claimOne()], { kind: "retry", message: "no", retryInSeconds: 40 });
    expect(await ask()).toMatchObject({ waiting: [], dueMs: near(40), upkeepMs: null });
  });

  test("the deadline of a lease, only to those who ask for upkeep, and 0 when it has passed", async () => {
    await queue.enqueue({}, {});
    await queue.claim({ limit: 1, leaseSeconds: 30 });
    await queue.claim({ limit: 1, leaseSeconds: 300 });
    expect(await ask()).toMatchObject({ dueMs: null, upkeepMs: near(30) });
    expect(await ask(false)).toMatchObject({ dueMs: null, upkeepMs: null });
    await db.pool.query("update sluice.lease set deadline = now() - interval '1 hour'");
    expect(await ask()).toMatchObject({ upkeepMs: 0 });
  });

  test("the expiry of a job", async () => {
    await queue.enqueue({ expiresAt: new Date(Date.now() + 50_000) });
    expect(await ask()).toMatchObject({ waiting: [{ queue: "default", due: 1 }], upkeepMs: near(50) });
  });

  test("a notice to send again, but none that nobody has sent in time", async () => {
    await db.pool.query(
      `insert into sluice.delivery (id, target, about, notice, next_try_at)
       values (gen_random_uuid(), 'ops', 'a', '{}', now() + interval '25 s'),
              (gen_random_uuid(), 'gone', 'a', '{}', now() - interval '1 day')`,
    );
    expect(await ask()).toMatchObject({ dueMs: null, upkeepMs: near(25) });
  });

  test("the next probe of an open breaker", async () => {
    await db.run(openBreaker("echo"));
    await db.pool.query("update sluice.breaker set probed_at = now() - interval '20 s'");
    expect(await ask()).toMatchObject({ dueMs: near(40) });
    await db.pool.query("update sluice.breaker set probed_at = now() - interval '61 s'");
    expect(await ask()).toMatchObject({ dueMs: null });
  });
});

describe("of a type whose rate is used up", () => {
  const rated = [{ type: "echo", limits: { rate: { limit: 4, perSeconds: 60 } } }];
  const start = (limit: number, secondsAgo: number) =>
    db.run(claim({ queue: "default", types: rated, limit, leaseSeconds: 300 })).then(({ jobs }) =>
      queue
        .query(
          `update sluice.limit_state set started_at = started_at[: cardinality(started_at) - 1]
           || array[now() - make_interval(secs => ${secondsAgo})]`,
        )
        .then(() => jobs.length),
    );

  test("the next start is due when the window has moved on", async () => {
    await queue.enqueue(...times(9, () => ({})));
    expect(await start(1, 50)).toBe(1);
    expect(await db.run(nextDue(rated))).toMatchObject({ dueMs: null }); // more may start now
    expect(await start(2, 30)).toBe(2);
    expect(await start(10, 20)).toBe(1);
    expect(await db.run(nextDue(rated))).toMatchObject({ dueMs: near(10) });
    expect(await db.run(look({ types: rated, cap: 10, upkeep: false, seconds: 1 }))).toMatchObject({
      dueMs: near(10),
    });
    expect(await db.run(nextDue([]))).toMatchObject({ dueMs: null });
  });

  test("nothing is due if no job of the type waits", async () => {
    await queue.enqueue(...times(4, () => ({})));
    expect(await start(10, 20)).toBe(4);
    expect(await db.run(nextDue(rated))).toMatchObject({ dueMs: null });
  });
});

describe("a job whose time has come", () => {
  test("is waiting, whether it was moved to `ready` or not", async () => {
    await queue.enqueue({ delaySeconds: 60 });
    await db.pool.query("update sluice.scheduled set run_at = now()");
    expect(await ask()).toMatchObject({ waiting: [{ queue: "default", due: 1 }], dueMs: null });
    await queue.claim({ queue: "other" }); // promotes the due jobs of all queues
    expect((await db.pool.query("select from sluice.scheduled")).rowCount).toBe(0);
    expect(await ask()).toMatchObject({ waiting: [{ queue: "default", due: 1 }], dueMs: null });
  });

  test("is neither due nor waiting while its type is paused, so nobody comes back for it in vain", async () => {
    await queue.enqueue({ delaySeconds: 60 });
    await db.pool.query("update sluice.scheduled set run_at = now()");
    await db.run(pause("ann", { type: "echo" }));
    expect(await ask(false)).toEqual({ waiting: [], hasDueRuns: false, dueMs: null, upkeepMs: null });
  });
});
