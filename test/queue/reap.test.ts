// The reap round: its steps are bounded, recorded and independent, and two rounds may run concurrently.
import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { endLook, newClock, startLook, tellClock } from "../../src/core/policy/clock.ts";
import { defineJob } from "../../src/jobs/define.ts";
import type { Database } from "../../src/queue/ports.ts";
import { reap } from "../../src/queue/reap.ts";
import { runAndRecord } from "../../src/queue/rounds.ts";
import { wake } from "../../src/queue/wake.ts";
import { differences } from "../support/balance.ts";
import { createTestPorts } from "../support/ports.ts";
import { scheduleVerbsOf } from "../support/schedules.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { only, secondsFromNow, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const verbs = verbsOf(db);
const backoff = { baseSeconds: 3, maxSeconds: 3, jitterSeconds: 0 };
const ports = createTestPorts(db, [defineJob("echo", { payload: z.object({}), backoff, run: () => {} })]);
beforeEach(() => emptyQueue(db.pool));

/** Makes jobs whose leases have run out. */
async function abandon(jobs: number, { perLease }: { perLease: number }): Promise<void> {
  await verbs.query("select sluice.enqueue_many('echo', array_fill('{}'::jsonb, array[$1::int]))", [jobs]);
  for (let n = 0; n < jobs; n += perLease) await verbs.claim({ limit: perLease, leaseSeconds: -1 });
}

const lastRound = async () =>
  only(
    await verbs.query<{
      reason: string;
      steps: Record<string, { ms: number; did: unknown[]; error?: string }>;
    }>("select reason, steps from sluice.round where kind = 'reap'"),
  );

test("a round reports what each step did and how long it took", async () => {
  await abandon(2, { perLease: 1 });
  await runAndRecord(ports, { kind: "reap" }, () => reap(ports));
  const { reason, steps } = await lastRound();
  expect(reason).toBe("done");
  expect(Object.keys(steps).toSorted()).toEqual([
    "cursors",
    "deaths",
    "dropped",
    "expired",
    "flows",
    "inspected",
    "leases",
    "ledger",
    "partitions",
    "pruned",
    "resolved",
    "schedules",
    "stamps",
    "stuck",
    "unreachable",
  ]);
  expect(steps).toMatchObject({ leases: { did: [{ returned: 2, buried: 0 }] }, expired: { did: [0] } });
  expect(steps.inspected?.did).toEqual([{ looked: 2, wrong: 0 }]);
  for (const { ms } of Object.values(steps)) expect(ms).toBeGreaterThanOrEqual(0);
});

test("a failed step is recorded with its error, and the other steps run", async () => {
  await abandon(1, { perLease: 1 });
  await verbs.query("alter function sluice.reap_expired rename to hidden");
  await expect(runAndRecord(ports, { kind: "reap" }, () => reap(ports))).rejects.toThrow(
    "1 of the reap round's steps failed",
  );
  await verbs.query("alter function sluice.hidden rename to reap_expired");
  const { reason, steps } = await lastRound();
  expect(reason).toBe("error");
  expect(steps).toMatchObject({
    leases: { did: [{ returned: 1 }] },
    expired: { did: [], error: expect.stringContaining("reap_expired") },
    pruned: { did: [0] },
  });
});

test("expired leases are reaped in bounded calls, with the backoff of their type", async () => {
  await abandon(4_500, { perLease: 500 });
  const { steps } = await reap(ports);
  expect(steps.leases?.did).toEqual([2000, 2000, 500].map((returned) => ({ returned, buried: 0 })));
  const { run_at } = only(
    await verbs.query<{ run_at: Date }>("select max(run_at) as run_at from sluice.scheduled"),
  );
  expect(secondsFromNow(run_at)).toBeLessThan(4);
});

test("a slow step leaves the rest to the next round", async () => {
  await abandon(4_500, { perLease: 500 });
  let nowMs = 0;
  const slow = { ...ports, clock: { ...ports.clock, nowMs: () => (nowMs += 6_000) } };
  const { steps } = await reap(slow);
  expect(steps.leases?.did).toHaveLength(1);
  expect((await reap(ports)).steps.leases?.did).toHaveLength(2);
  expect(await verbs.count("lease")).toBe(0);
});

/** Answers that every call was full, and sends the real statements. */
function fullDatabase(): { db: Database; sent(): number } {
  let sent = 0;
  const run: Database["run"] = async (statement) => {
    sent += 1;
    const answer = await db.run(statement);
    if (statement.name === "plan slots" || statement.name === "schedules to plan") return answer;
    const isCount = typeof answer === "number";
    return (isCount ? 1e6 : { ...(answer as object), returned: 1e6 }) as typeof answer;
  };
  return { db: { run }, sent: () => sent };
}

describe("when every step has more to do than fits", () => {
  const woken: unknown[] = [];
  // No time passes, so that only the number of statements ends a step.
  const clock = { ...ports.clock, nowMs: () => 0 };
  const asked = { ...ports, clock, wakeIn: (...call: unknown[]) => void woken.push(call) };
  beforeEach(async () => {
    woken.length = 0;
    const schedules = scheduleVerbsOf(db);
    await schedules.put({ cron: "* * * * * *", missed: "all" });
    await verbs.query("update sluice.schedule set planned_until = now() - interval '30 days'");
  });

  test("a round sends 44 statements with its record, each step has some, and the clock brings somebody back in a second", async () => {
    const full = fullDatabase();
    const round = { ...asked, db: full.db };
    const { steps } = await runAndRecord(round, { kind: "reap" }, () => reap(round));
    expect(full.sent()).toBe(44);
    const counts = Object.entries(steps).map(([step, { did }]) => [step, did.length]);
    expect(Object.fromEntries(counts)).toMatchObject({
      leases: 6,
      expired: 6,
      schedules: 3,
      ledger: 7,
      pruned: 8,
    });
    expect(woken).toEqual([[1000, { upkeep: true }]]);
  });

  test("a visit on the free plan sends at most 12 statements and some notices, and the next one follows in a second", async () => {
    const full = fullDatabase();
    const notices = { targets: [], sender: ports.sender, batch: 1 };
    const look = await wake(
      { ...asked, db: full.db },
      { plan: "free", fanOut: { jobsPerDrain: 500, maxDrains: 4 }, upkeep: true, notices },
    );
    expect(full.sent()).toBe(8 + 1 + 1); // pruning the notices, and the look; two more if runs over dead letters go on
    expect(look.upkeepMs).toBe(1000);
  });

  test("a round that failed in part brings somebody back too", async () => {
    const full = fullDatabase();
    await verbs.query("alter function sluice.inspect rename to hidden");
    await expect(reap({ ...asked, db: full.db })).rejects.toThrow("steps failed");
    await verbs.query("alter function sluice.hidden rename to inspect");
    expect(woken).toHaveLength(1);
  });
});

test("one step alone may use what the others leave", async () => {
  await abandon(13_000, { perLease: 500 });
  const woken: unknown[] = [];
  const { steps } = await reap({ ...ports, wakeIn: (ms) => void woken.push(ms) });
  expect(steps.leases?.did).toHaveLength(6);
  expect(woken).toEqual([1000]);
  woken.length = 0;
  await reap({ ...ports, wakeIn: (ms) => void woken.push(ms) });
  expect([await verbs.count("lease"), woken]).toEqual([0, []]);
});

test("slots of a day for each second are planned within seconds by visits of the clock alone", async () => {
  const schedules = scheduleVerbsOf(db);
  await schedules.put({ cron: "* * * * * *", missed: "all" });
  await verbs.query("update sluice.schedule set planned_until = now() - interval '1 day'");
  const options = { plan: "free", fanOut: { jobsPerDrain: 500, maxDrains: 4 }, upkeep: true } as const;
  const notices = { targets: [], sender: ports.sender, batch: 1 };
  let state = tellClock(newClock, { nowMs: 0, dueMs: null, visitMs: 0, isWork: false });
  const visits: number[] = [];
  for (let nowMs = 0; nowMs < 10_000; nowMs = state.visitAtMs ?? Number.POSITIVE_INFINITY) {
    const started = startLook(state, nowMs);
    if (!started) break;
    visits.push(nowMs);
    const look = await wake(ports, { ...options, notices });
    const ended = { startedMs: nowMs, nowMs, hasWork: false, dueMs: null, upkeepMs: look.upkeepMs };
    state = endLook(started, ended);
  }
  const [planned] = await verbs.query<{ late: number }>(
    "select count(*)::int as late from sluice.scheduled where run_at < now() - interval '90 s'",
  );
  expect(planned?.late).toBeGreaterThan(86_000);
  expect(visits).toEqual([0, 1000, 2000]);
});

test("two concurrent rounds reap each job once", async () => {
  await abandon(3_000, { perLease: 100 });
  await verbs.enqueue(...times(300, () => ({ expiresAt: new Date(Date.now() - 1000) })));
  const rounds = await Promise.all(times(2, () => reap(ports)));
  const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0);
  const returned = rounds.flatMap(({ steps }) => steps.leases?.did as { returned: number }[]);
  expect(sum(returned.map((did) => did.returned))).toBe(3_000);
  expect(sum(rounds.flatMap(({ steps }) => steps.expired?.did as number[]))).toBe(300);
  expect(await verbs.count("scheduled")).toBe(3_000);
  expect(await verbs.query("select from sluice.closed where reason = 'expired'")).toHaveLength(300);
  expect(await differences(verbs)).toEqual([]);
});
