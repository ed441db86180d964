// Debounce: calls with one key make one job as long as that waits for its first run, at any concurrency, and each call is told
// what has become of it.
import { beforeEach, describe, expect, test } from "vitest";
import type { MergeDebounce, PlainDebounce } from "../../src/core/job-options.ts";
import { cancel, enqueue, enqueueFlow, prune } from "../../src/core/sql/index.ts";
import { newJob } from "../support/jobs.ts";
import { inSession, sqlState, untilWaiting } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, only, secondsBetween, secondsFromNow, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const callers = 64;
const first = (fields: Partial<PlainDebounce> = {}) =>
  ({ key: "k", mode: "first", seconds: 60, ...fields }) satisfies PlainDebounce;
const last = (fields: Partial<PlainDebounce> = {}) => first({ mode: "last", ...fields });
const merge = (fields: Partial<MergeDebounce> = {}) =>
  ({ key: "k", mode: "merge", seconds: 60, ...fields }) satisfies MergeDebounce;
const call = async (fields: Parameters<typeof queue.enqueue>[0]) => only(await queue.enqueue(fields));
const outcomes = (answers: readonly { outcome: string | null }[]) =>
  Object.fromEntries(
    Object.entries(Object.groupBy(answers, ({ outcome }) => outcome ?? "none")).map(([name, list]) => [
      name,
      list?.length,
    ]),
  );
const passTime = (seconds: number) =>
  queue
    .query(
      `with moved as (update sluice.scheduled set run_at = run_at - make_interval(secs => ${seconds}) returning id)
     update sluice.job set scheduled_at = scheduled_at - make_interval(secs => ${seconds}) where id in (select id from moved)`,
    )
    .then(() =>
      queue.query(`update sluice.debounce_state set since = since - make_interval(secs => ${seconds})`),
    );
const makeDue = () => passTime(3600);

async function expectBalancedBooks(): Promise<void> {
  const [books] = await queue.query<Record<string, number>>(
    `select sum(enqueued)::int as enqueued, sum(pending)::int as pending, sum(scheduled)::int as scheduled,
            sum(leased)::int as leased, sum(completed)::int as completed, sum(cancelled)::int as cancelled
     from sluice.books`,
  );
  const scheduled = await queue.count("scheduled");
  expect(books).toMatchObject({
    enqueued: await queue.count("job"),
    pending: scheduled + (await queue.count("ready")),
    scheduled,
    cancelled: await queue.count("closed"),
  });
}

describe("64 callers with one key at once leave one waiting job:", () => {
  test("first keeps the job of one of them", async () => {
    const answers = await Promise.all(times(callers, () => call({ debounce: first() })));
    expect(outcomes(answers)).toEqual({ created: 1, kept: callers - 1 });
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1);
    expect(await queue.count("job")).toBe(1);
    await expectBalancedBooks();
  });

  test("last leaves the one that nobody has replaced, and the others are one chain of replacements", async () => {
    const answers = await Promise.all(times(callers, (n) => call({ payload: { n }, debounce: last() })));
    expect(outcomes(answers)).toEqual({ created: 1, replaced: callers - 1 });
    const replaced = answers.flatMap(({ replacedId }) => replacedId ?? []);
    expect(new Set(replaced).size).toBe(callers - 1);
    const waiting = only(await queue.query<{ id: string }>("select id from sluice.scheduled")).id;
    expect(answers.filter(({ id }) => !replaced.includes(id)).map(({ id }) => id)).toEqual([waiting]);
    for (const { id, replacedId } of answers)
      if (replacedId)
        expect(await queue.find(replacedId)).toMatchObject({ status: "cancelled", supersededBy: id });
    expect(await queue.count("closed")).toBe(callers - 1);
    await expectBalancedBooks();
  });

  test("merge collects all payloads", async () => {
    const answers = await Promise.all(times(callers, (n) => call({ payload: { n }, debounce: merge() })));
    expect(outcomes(answers)).toEqual({ created: 1, merged: callers - 1 });
    const { payload } = await queue.find(only([...new Set(answers.map(({ id }) => id))]));
    const items = payload.items as { n: number }[];
    expect(items.map(({ n }) => n).toSorted((a, b) => a - b)).toEqual(times(callers, (n) => n));
    await expectBalancedBooks();
  });

  test("throttle makes one", async () => {
    const throttle = { key: "k", seconds: 60 };
    const answers = await Promise.all(times(callers, () => call({ throttle })));
    expect(outcomes(answers)).toEqual({ created: 1, throttled: callers - 1 });
    expect(await queue.count("job")).toBe(1);
    await expectBalancedBooks();
  });

  test("also while workers claim them: every payload reaches one run, and nothing is lost", {
    timeout: 60_000,
  }, async () => {
    const seen: number[] = [];
    let open = true;
    const work = async () => {
      while (open || (await queue.count("ready")) > 0) {
        const jobs = await queue.claim({ limit: 10 });
        seen.push(...jobs.flatMap(({ payload }) => (payload.items as { n: number }[]).map(({ n }) => n)));
        await queue.settle(jobs, complete);
      }
    };
    const workers = times(4, work);
    const rounds = times(20, (round) => round);
    for (const round of rounds)
      await Promise.all(
        times(callers / 2, (n) =>
          call({ payload: { n: round * callers + n }, debounce: merge({ seconds: 0, maxItems: 5 }) }),
        ),
      );
    open = false;
    await Promise.all(workers);
    const given = rounds.flatMap((round) => times(callers / 2, (n) => round * callers + n));
    expect(seen.toSorted((a, b) => a - b)).toEqual(given);
    await expectBalancedBooks();
  });

  test("also while workers claim them: each job is replaced or run, and never both", {
    timeout: 60_000,
  }, async () => {
    const ran: string[] = [];
    let open = true;
    const work = async () => {
      while (open || (await queue.count("ready")) > 0) {
        const jobs = await queue.claim({ limit: 1 });
        ran.push(...jobs.map(({ id }) => id));
        await queue.settle(jobs, complete);
      }
    };
    const workers = times(4, work);
    const answers = await Promise.all(
      times(callers, async () => {
        const mine = [];
        for (let n = 0; n < 5; n++) mine.push(await call({ debounce: last({ seconds: 0 }) }));
        return mine;
      }),
    );
    open = false;
    await Promise.all(workers);
    const replaced = answers.flat().flatMap(({ replacedId }) => replacedId ?? []);
    expect([...ran, ...replaced].toSorted()).toEqual(
      answers
        .flat()
        .map(({ id }) => id)
        .toSorted(),
    );
    await expectBalancedBooks();
  });
});

describe("batches", () => {
  test("answer each job in its order, as if each had come alone", async () => {
    const answers = await queue.enqueue(
      { payload: { n: 1 }, debounce: last() },
      { payload: { n: 2 } },
      { payload: { n: 3 }, debounce: last() },
      { payload: { n: 4 }, debounce: first() },
      { payload: { n: 5 }, debounce: merge({ key: "m" }) },
      { payload: { n: 6 }, debounce: merge({ key: "m" }) },
      { throttle: { key: "k", seconds: 60 } },
      { throttle: { key: "k", seconds: 60 } },
    );
    const [one, , three, , five, , seven] = answers;
    expect(answers).toMatchObject([
      { outcome: "created", replacedId: null, status: "cancelled" },
      { outcome: null, status: "pending" },
      { outcome: "replaced", replacedId: one?.id, status: "pending" },
      { outcome: "kept", id: three?.id },
      { outcome: "created" },
      { outcome: "merged", id: five?.id },
      { outcome: "created" },
      { outcome: "throttled", id: seven?.id },
    ]);
    expect((await queue.find(five?.id ?? "")).payload).toEqual({ items: [{ n: 5 }, { n: 6 }] });
    await expectBalancedBooks();
  });

  test("with the same keys in opposite order do not deadlock", { timeout: 60_000 }, async () => {
    for (let round = 0; round < 10; round++) {
      const forth = times(20, (n) =>
        newJob({ debounce: n % 2 ? first({ key: `${n}` }) : last({ key: `${n}` }) }),
      );
      await Promise.all(times(8, (n) => db.run(enqueue(n % 2 ? forth : forth.toReversed()))));
    }
    expect(await queue.count("scheduled")).toBe(20);
    await expectBalancedBooks();
  });
});

describe("a waiting job", () => {
  test("is due after the seconds; last moves its time on, but never past the longest wait after the first", async () => {
    const at = async (debounce: PlainDebounce) => secondsFromNow((await call({ debounce })).scheduledAt);
    expect(await at(last({ maxWaitSeconds: 100 }))).toBeCloseTo(60, 0);
    await passTime(30);
    expect(await at(last({ maxWaitSeconds: 100 }))).toBeCloseTo(60, 0);
    await passTime(30);
    expect(await at(last({ maxWaitSeconds: 100 }))).toBeCloseTo(40, 0);
    expect(await at(first())).toBeCloseTo(40, 0);
    expect(await queue.count("scheduled")).toBe(1);
  });

  test("is bound while it waits for a claim, and free once it is claimed", async () => {
    const one = await call({ debounce: first() });
    await makeDue();
    expect(await call({ debounce: first() })).toMatchObject({ outcome: "kept", id: one.id });
    await queue.claim({ types: ["other"] }); // promotes it
    expect(await call({ debounce: first() })).toMatchObject({ outcome: "kept", id: one.id });
    expect((await queue.claimOne()).id).toBe(one.id);
    expect(await call({ debounce: first() })).toMatchObject({ outcome: "created" });
  });

  test.each([
    ["is retried", { kind: "retry", message: "no", retryInSeconds: 600 }],
    ["is snoozed", { kind: "snooze", retryInSeconds: 600 }],
    ["is dead and replayed", { kind: "bury", message: "no" }],
  ] as const)("that has run and %s is free", async (_, outcome) => {
    await call({ debounce: last() });
    await makeDue();
    const job = await queue.claimOne();
    await queue.settle([job], outcome);
    if (outcome.kind === "bury") await queue.query(`select sluice.replay('me', '${job.id}')`);
    expect(await call({ debounce: last() })).toMatchObject({ outcome: "created", replacedId: null });
    expect(await queue.find(job.id)).toMatchObject({ status: "pending" });
  });

  test("that was released unstarted is bound again, and so is none that was cancelled", async () => {
    const one = await call({ debounce: first({ seconds: 0 }) });
    await queue.settle([await queue.claimOne()], { kind: "release" });
    expect(await call({ debounce: first({ seconds: 0 }) })).toMatchObject({ outcome: "kept", id: one.id });
    await db.run(cancel(one.id));
    expect(await call({ debounce: first({ seconds: 0 }) })).toMatchObject({ outcome: "created" });
  });

  test("belongs to its queue and type", async () => {
    const calls = [{}, { type: "other" }, { queue: "q" }];
    for (const fields of calls)
      expect(await call({ ...fields, debounce: first() })).toMatchObject({ outcome: "created" });
  });

  test("with a partition key gives its turn back when it is replaced", async () => {
    const fields = { partitionKey: "p", debounce: last({ seconds: 0 }) };
    const one = await call(fields);
    await queue.enqueue({ partitionKey: "p", type: "other" });
    await queue.claim({ types: ["none"] });
    expect(await call(fields)).toMatchObject({ outcome: "replaced", replacedId: one.id });
    expect((await queue.claim({ types: ["echo", "other"] })).map(({ type }) => type)).toEqual(["other"]);
    await expectBalancedBooks();
  });
});

describe("a merged list", () => {
  test("that is full is due at once, and the next call makes a new job", async () => {
    const answers = [];
    for (let n = 0; n < 4; n++)
      answers.push(await call({ payload: { n }, debounce: merge({ maxItems: 3 }) }));
    expect(answers.map(({ outcome }) => outcome)).toEqual(["created", "merged", "merged", "created"]);
    expect(secondsFromNow(answers[2]?.scheduledAt ?? new Date(0))).toBeCloseTo(0, 0);
    expect((await queue.claimOne()).payload).toEqual({ items: [{ n: 0 }, { n: 1 }, { n: 2 }] });
    await expectBalancedBooks();
  });

  test("that would be larger than a payload is due at once, and the call makes a new job", async () => {
    const text = "x".repeat(40_000);
    const answers = [
      await call({ payload: { text }, debounce: merge() }),
      await call({ payload: { text }, debounce: merge() }),
    ];
    expect(answers.map(({ outcome }) => outcome)).toEqual(["created", "created"]);
    expect((await queue.claim()).map(({ id }) => id)).toEqual([answers[0]?.id]);
    const largest = { text: "x".repeat(65_536 - '{"text":""}'.length) };
    expect(await sqlState(call({ payload: largest, debounce: merge({ key: "large" }) }))).toBe("22023");
  });

  test("of one call is due at once when it is full", async () => {
    const answers = await queue.enqueue(
      ...times(3, (n) => ({ payload: { n }, debounce: merge({ maxItems: 2 }) })),
    );
    expect(answers.map(({ outcome }) => outcome)).toEqual(["created", "merged", "created"]);
    expect((await queue.claimOne()).payload).toEqual({ items: [{ n: 0 }, { n: 1 }] });
  });

  test("begins with the payload of a job that was made in another mode", async () => {
    const one = await call({ payload: { n: 1 }, debounce: first() });
    expect(await call({ payload: { n: 2 }, debounce: merge() })).toMatchObject({
      outcome: "merged",
      id: one.id,
    });
    expect((await queue.find(one.id)).payload).toEqual({ items: [{ n: 1 }, { n: 2 }] });
  });
});

describe("a transaction that stays open", () => {
  const enqueueText = (mode: string) =>
    `select * from sluice.enqueue_with_outcome('echo', options => '{"debounce": {"key": "k", "mode": "${mode}", "seconds": 0}}')`;

  test.each(["commit", "rollback"])("makes the next call wait for its %s", async (end) => {
    await inSession(db.pool, async (owner) => {
      await owner.query("begin");
      const { rows } = await owner.query(enqueueText("last"));
      const second = call({ debounce: last() });
      await untilWaiting(db.pool);
      await owner.query(end);
      expect(await second).toMatchObject(
        end === "commit"
          ? { outcome: "replaced", replacedId: rows[0].job_id }
          : { outcome: "created", replacedId: null },
      );
    });
    expect((await queue.count("ready")) + (await queue.count("scheduled"))).toBe(1);
    await expectBalancedBooks();
  });

  test("holds back the job that it has kept, and other jobs are claimed meanwhile", async () => {
    const kept = await call({ debounce: first({ seconds: 0 }) });
    const other = await queue.enqueueOne();
    await inSession(db.pool, async (owner) => {
      await owner.query("begin");
      expect((await owner.query(enqueueText("first"))).rows).toMatchObject([
        { outcome: "kept", job_id: kept.id },
      ]);
      expect((await queue.claim()).map(({ id }) => id)).toEqual([other]);
      await owner.query("commit");
      expect((await queue.claim()).map(({ id }) => id)).toEqual([kept.id]);
    });
  });

  test("that is rolled back leaves the job that it had replaced", async () => {
    const one = await call({ debounce: last() });
    await inSession(db.pool, async (owner) => {
      await owner.query("begin");
      await owner.query(enqueueText("last"));
      await owner.query(enqueueText("merge"));
      await owner.query("rollback");
    });
    expect(await queue.find(one.id)).toMatchObject({ status: "pending", payload: {} });
    expect(await call({ debounce: last() })).toMatchObject({ outcome: "replaced", replacedId: one.id });
    await expectBalancedBooks();
  });

  test("waits for a claim that takes its job, and makes a new one; if the claim is rolled back, it keeps the job", async () => {
    for (const end of ["rollback", "commit"]) {
      const one = await call({ debounce: first({ seconds: 0 }) });
      await inSession(db.pool, async (worker) => {
        await worker.query("begin");
        await worker.query("delete from sluice.ready where id = $1", [one.id]); // as a claim does it
        const second = call({ debounce: first({ seconds: 0 }) });
        await untilWaiting(db.pool);
        await worker.query(end);
        expect((await second).outcome).toBe(end === "commit" ? "created" : "kept");
      });
    }
  });

  test("that sees an old state fails with 40001 instead of making a second job", async () => {
    for (const mode of ["last", "merge"]) {
      await call({ debounce: last({ seconds: 0 }) });
      await inSession(db.pool, async (old) => {
        await old.query("begin isolation level repeatable read");
        await old.query("select 1");
        await call({ debounce: mode === "last" ? last({ seconds: 0 }) : merge({ seconds: 0 }) });
        expect(await sqlState(old.query(enqueueText(mode)))).toBe("40001");
      });
    }
  });

  test("that is killed leaves the key free", async () => {
    const client = await db.pool.connect();
    client.on("error", () => {});
    await client.query("begin");
    const { rows } = await client.query("select pg_backend_pid() as pid");
    await client.query(enqueueText("last"));
    const second = call({ debounce: last() });
    await untilWaiting(db.pool);
    await queue.query(`select pg_terminate_backend(${rows[0].pid})`);
    expect(await second).toMatchObject({ outcome: "created" });
    client.release(true);
    await expectBalancedBooks();
  });
});

describe("an idempotency key", () => {
  test.each([first(), last(), merge()])(
    "of $mode is answered with the job of the first call, and changes nothing",
    async (debounce) => {
      await call({ debounce });
      const fields = { debounce, payload: { n: 1 }, idempotencyKey: "i" };
      const told = await call(fields);
      const before = await queue.find(told.id);
      expect(await call(fields)).toMatchObject({ id: told.id, outcome: "kept", deduplicated: true });
      expect(await queue.find(told.id)).toEqual(before);
      expect(await queue.count("scheduled")).toBe(1);
    },
  );

  test("of a throttled call belongs to the job that was there", async () => {
    const throttle = { key: "k", seconds: 60 };
    const one = await call({ throttle });
    expect(await call({ throttle, idempotencyKey: "i" })).toMatchObject({ id: one.id, outcome: "throttled" });
    expect(await call({ throttle, idempotencyKey: "i" })).toMatchObject({ id: one.id, deduplicated: true });
  });
});

describe("a throttle", () => {
  const throttle = { key: "k", seconds: 60 };

  test("lasts from the making of its job, whatever becomes of that, and then lets one more through", async () => {
    const one = await call({ throttle });
    await queue.settle([await queue.claimOne()], complete);
    expect(await call({ throttle })).toMatchObject({ outcome: "throttled", id: one.id, status: "completed" });
    await queue.query(
      "update sluice.debounce_state set since = since - interval '1 minute', until = until - interval '1 minute'",
    );
    expect(await call({ throttle })).toMatchObject({ outcome: "created" });
    expect(await call({ throttle })).toMatchObject({ outcome: "throttled" });
  });

  test("may delay its job, and ends when the clock steps back before it", async () => {
    const { scheduledAt } = await call({ throttle, delaySeconds: 600 });
    expect(secondsFromNow(scheduledAt)).toBeCloseTo(600, 0);
    await queue.query(
      "update sluice.debounce_state set since = since + interval '1 hour', until = until + interval '1 hour'",
    );
    expect(await call({ throttle })).toMatchObject({ outcome: "created" });
  });
});

test("a flow refuses a debounce", async () => {
  const job = newJob({ debounce: first() });
  expect(await sqlState(db.run(enqueueFlow([{ ref: "a", job, after: [] }])))).toBe("22023");
});

test("a plain option of enqueue_with_outcome works too, and an unknown one is refused", async () => {
  const [told] = await queue.query<{ job_id: string; outcome: null; scheduled_at: Date }>(
    `select * from sluice.enqueue_with_outcome('echo', '{}', '{"delay_seconds": 60, "tags": ["a"]}')`,
  );
  expect(told).toMatchObject({ outcome: null, deduplicated: false, replaced_job_id: null });
  expect(await queue.find(told?.job_id ?? "")).toMatchObject({ tags: ["a"] });
  const unknown = queue.query(`select sluice.enqueue_with_outcome('echo', '{}', '{"delay": 60}')`);
  expect(await sqlState(unknown)).toBe("22023");
});

describe("prune", () => {
  const expire = () => queue.query("update sluice.debounce_key set expires_at = now() - interval '1 second'");

  test("forgets keys whose job does not wait and whose throttle is over, at most so many at a time", async () => {
    await queue.enqueue(
      ...times(5, (n) => ({ debounce: first({ key: `${n}`, seconds: 0 }) })),
      { throttle: { key: "t", seconds: 60 } },
      { debounce: last() },
    );
    await queue.settle(await queue.claim(), complete);
    await expire();
    await db.run(prune({ limit: 3 }));
    expect(await queue.count("debounce_key")).toBeGreaterThan(3);
    await db.run(prune({ limit: 100 }));
    expect(await queue.count("debounce_key")).toBe(2);
    expect(await queue.count("debounce_state")).toBe(2);
    expect(await call({ debounce: last() })).toMatchObject({ outcome: "replaced" });
    expect(await call({ throttle: { key: "t", seconds: 60 } })).toMatchObject({ outcome: "throttled" });
  });

  test("leaves a key alone that a call holds", async () => {
    await call({ debounce: first({ seconds: 0 }) });
    await queue.settle(await queue.claim(), complete);
    await expire();
    await inSession(db.pool, async (owner) => {
      await owner.query("begin");
      await owner.query(
        `select sluice.enqueue('echo', debounce => '{"key": "k", "mode": "first", "seconds": 0}')`,
      );
      await db.run(prune({ limit: 100 }));
      await owner.query("commit");
    });
    expect(await call({ debounce: first({ seconds: 0 }) })).toMatchObject({ outcome: "kept" });
  });
});

test("a key that is used all the time stays one row to lock and one to read, also in a pinned database", async () => {
  await inSession(db.pool, async (pinning) => {
    await pinning.query("begin isolation level repeatable read");
    await pinning.query("select 1");
    const fast = await timed(() => times(50, () => ({ debounce: last() })));
    await queue.query(
      `select sluice.enqueue('echo', debounce => '{"key": "k", "mode": "last", "seconds": 60}') from generate_series(1, 3000)`,
    );
    const slow = await timed(() => times(50, () => ({ debounce: last() })));
    expect(slow).toBeLessThan(fast * 5);
  });
  expect(await queue.count("debounce_state")).toBe(1);
});

async function timed(jobs: () => Parameters<typeof queue.enqueue>): Promise<number> {
  const from = new Date();
  for (const job of jobs()) await queue.enqueue(job);
  return secondsBetween(from, new Date());
}
