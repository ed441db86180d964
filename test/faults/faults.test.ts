// Drains, reap rounds and producers over a database whose faults follow a seeded plan. After each plan all jobs are run
// to their end without faults, and then the checks must hold.
import { expect, test } from "vitest";
import * as z from "zod";
import { FatalError, RetryableError, Snooze } from "../../src/core/errors.ts";
import { books, claim, reapLeases } from "../../src/core/sql/index.ts";
import { defineJob } from "../../src/jobs/define.ts";
import { drainQueue } from "../../src/queue/drain/drain.ts";
import { enqueue } from "../../src/queue/enqueue.ts";
import type { Database, HandlerContext, Ports } from "../../src/queue/ports.ts";
import { reap } from "../../src/queue/reap.ts";
import { bringForward, expireLeases } from "../model/gate/gate-time.ts";
import { createFaultyDatabase, DatabaseFault, type Fault, faults } from "../support/faulty-database.ts";
import { newJob } from "../support/jobs.ts";
import { createTestPorts, roomyBudget } from "../support/ports.ts";
import { createQuickEmpty } from "../support/quick-empty.ts";
import { createRandom } from "../support/seeded-random.ts";
import { useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
// The database may be dropped before the last connection of the pool has closed.
db.pool.on("error", () => {});
const emptyQuickly = createQuickEmpty(db.pool);
const plans = 200;
const plansPerTest = 20;
const jobsPerPlan = 8;
const faultyRounds = 4;
const maxRounds = 60;
const maxAttempts = 4;
const types = ["steady", "flaky", "fatal", "sleepy"] as const;
type Type = (typeof types)[number];
const options = { queue: "default", budget: { ...roomyBudget, subrequests: 40, maxBatch: 3 } };

/** The allowed final states of each type, whatever the database does. */
const ends = {
  steady: ["completed", "abandoned"],
  flaky: ["completed", "abandoned", "exhausted"],
  fatal: ["fatal", "abandoned"],
  sleepy: ["completed", "abandoned"],
} satisfies Record<Type, string[]>;

/** How often each job ran under each lease. It is 0 if another worker claimed the job and died. */
type Effects = Map<string, Map<string, number>>;
const totals = new Map<Fault, number>();

for (let first = 1; first <= plans; first += plansPerTest) {
  const last = first + plansPerTest - 1;
  test(`under fault plans ${first} to ${last} nothing is lost, nothing is settled twice`, async () => {
    for (let seed = first; seed <= last; seed++) await runPlan(seed);
  });
}

test("the plans contained every kind of fault", () => {
  expect([...totals.keys()].sort()).toEqual([...faults].sort());
});

async function runPlan(seed: number): Promise<void> {
  await emptyQuickly();
  const effects: Effects = new Map();
  const healthy = queueOf(db, effects);
  const random = createRandom(seed);
  const meanwhile = async () => {
    await passTime();
    await db.run(reapLeases({ limit: 1000 }));
    await passTime();
    const rival = { queue: "default", types, limit: 2, leaseSeconds: 60 };
    const claimed = await db.run(claim(rival));
    for (const job of claimed.jobs) noteRun(effects, job.id, { ...job, times: 0 });
  };
  const faulty = createFaultyDatabase(db, { random, share: 0.1 + random.next() * 0.4, meanwhile });
  const broken = { ...healthy, db: faulty };

  const enqueues = Array.from({ length: jobsPerPlan }, (_, n) =>
    enqueueUntilDone(broken, { key: `${seed}-${n}`, type: types[n % 4] ?? "steady" }),
  );
  for (let round = 0; round < faultyRounds; round++) {
    await Promise.all([
      tolerate(drainQueue(broken, options)),
      tolerate(drainQueue(broken, options)),
      tolerate(reap(broken)),
    ]);
    await passTime();
  }
  const ids = await Promise.all(enqueues);
  await driveToTheEnd(healthy);
  await checkLaws({ seed, ids, effects });
  for (const [fault, times] of faulty.faultCounts) totals.set(fault, (totals.get(fault) ?? 0) + times);
}

/** A producer that does not know whether its enqueue succeeded retries with the same idempotency key. */
async function enqueueUntilDone(ports: Ports, { key, type }: { key: string; type: Type }): Promise<string> {
  for (;;) {
    const job = newJob({ type, idempotencyKey: key, maxAttempts });
    const enqueued = await tolerate(enqueue(ports, job));
    if (enqueued) return enqueued.id;
  }
}

/** A planned fault ends a round, as it would end an invocation. Any other error is a bug. */
async function tolerate<T>(round: Promise<T>): Promise<T | undefined> {
  try {
    return await round;
  } catch (error) {
    const causes: unknown[] = error instanceof AggregateError ? error.errors : [error];
    if (!causes.every((cause) => cause instanceof DatabaseFault)) throw error;
    return undefined;
  }
}

function queueOf(database: Database, effects: Effects) {
  const payload = z.object({});
  const note = ({ jobId, leaseKey }: HandlerContext) => noteRun(effects, jobId, { leaseKey, times: 1 });
  return createTestPorts(database, [
    defineJob("steady", {
      payload,
      run(_, context) {
        note(context);
        return context.leaseKey;
      },
    }),
    defineJob("flaky", {
      payload,
      run(_, context) {
        note(context);
        if (context.attempt < 3) throw new RetryableError("busy", { retryInSeconds: context.attempt - 1 });
      },
    }),
    defineJob("fatal", {
      payload,
      run(_, context) {
        note(context);
        throw new FatalError("never");
      },
    }),
    defineJob("sleepy", {
      payload,
      run(_, context) {
        if (note(context) === 1) throw new Snooze(5);
      },
    }),
  ]);
}

/** Returns the number of leases under which the job has run. */
function noteRun(
  effects: Effects,
  id: string,
  { leaseKey, times }: { leaseKey: string; times: number },
): number {
  const runs = effects.get(id) ?? new Map<string, number>();
  effects.set(id, runs.set(leaseKey, (runs.get(leaseKey) ?? 0) + times));
  return [...runs.values()].filter((count) => count > 0).length;
}

/** Uses a database without faults, so no round may fail. */
async function driveToTheEnd(ports: Ports): Promise<void> {
  for (let round = 0; round < maxRounds; round++) {
    await passTime();
    await reap(ports);
    await drainQueue(ports, options);
    const { rows } = await db.pool.query(
      "select from sluice.jobs where status in ('pending', 'processing') limit 1",
    );
    if (rows.length === 0) return;
  }
  throw new Error(`there is still work after ${maxRounds} rounds`);
}

async function passTime(): Promise<void> {
  await expireLeases(db.pool, { share: 1 });
  await bringForward(db.pool);
}

async function checkLaws({ seed, ids, effects }: { seed: number; ids: string[]; effects: Effects }) {
  const law = (text: string) => `plan ${seed}: ${text}`;
  const { rows } = await db.pool.query(`
    select jobs.id, type, status, attempts, dead_reason, output,
           (select count(*) from sluice.done cross join unnest(ids) as done_id where done_id = jobs.id)::int as done,
           (select count(*) from sluice.closed where closed.id = jobs.id)::int as closed
    from sluice.jobs`);
  expect(rows.map((row) => row.id).sort(), law("a job for each key, and no other")).toEqual(ids.sort());
  for (const job of rows) {
    expect(job.done + job.closed, law("ended once")).toBe(1);
    expect(job.attempts, law("attempts")).toBeLessThanOrEqual(maxAttempts);
    const runs = [...(effects.get(job.id) ?? [])];
    const counts = runs.map(([, times]) => times);
    expect(Math.max(0, ...counts), law("once under one lease")).toBeLessThanOrEqual(1);
    expect(ends[job.type as Type], law(`a ${job.type} job`)).toContain(job.dead_reason ?? job.status);
    if (job.status !== "completed") continue;
    expect(Math.max(0, ...counts), law("it ran")).toBe(1);
    const last = runs
      .map(([key]) => key)
      .sort()
      .at(-1);
    if (job.type === "steady") expect(job.output, law("the last lease decides")).toBe(last);
  }
  for (const book of await db.run(books())) {
    const { enqueued, completed, dead, pending, leased } = book;
    const inTable = rows.filter((row) => row.type === book.type);
    const done = inTable.filter((row) => row.status === "completed").length;
    expect({ enqueued, completed, dead, pending, leased }, law("the books")).toEqual({
      enqueued: inTable.length,
      completed: done,
      dead: inTable.length - done,
      pending: 0,
      leased: 0,
    });
  }
}
