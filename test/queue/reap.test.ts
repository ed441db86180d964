// The reap round: its steps are bounded, recorded and independent, and two rounds may run concurrently.
import { beforeEach, expect, test } from "vitest";
import * as z from "zod";
import { defineJob } from "../../src/jobs/define.ts";
import type { Database } from "../../src/queue/ports.ts";
import { reap } from "../../src/queue/reap.ts";
import { runAndRecord } from "../../src/queue/rounds.ts";
import { differences } from "../support/balance.ts";
import { createTestPorts } from "../support/ports.ts";
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
  const slow = { ...ports, clock: { ...ports.clock, nowMs: () => (nowMs += 4_000) } };
  const { steps } = await reap(slow);
  expect(steps.leases?.did).toHaveLength(1);
  expect((await reap(ports)).steps.leases?.did).toHaveLength(2);
  expect(await verbs.count("lease")).toBe(0);
});

test("a round in which every step has more to do sends at most 47 statements", async () => {
  let sent = 0;
  const full: Database = {
    async run(statement) {
      sent += 1;
      const answer = await db.run(statement);
      const isCount = typeof answer === "number";
      return (isCount ? 1e6 : { ...(answer as object), returned: 1e6 }) as typeof answer;
    },
  };
  const { steps } = await reap({ ...ports, db: full });
  expect(sent).toBe(47);
  expect(steps.pruned?.did).toHaveLength(9);
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
