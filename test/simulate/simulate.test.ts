// The simulation in its small form: it runs and violates nothing. And its checks find what they are for.
import { describe, expect, test } from "vitest";
import { bucketCount } from "../../src/core/policy/hash-ring.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { findViolations } from "./check-history.ts";
import { parseFlags, usage } from "./flags.ts";
import { type Attempt, isCompletion } from "./history.ts";
import { planEvents } from "./plan.ts";
import { report } from "./report.ts";
import { ringChart } from "./ring-chart.ts";
import { simulate } from "./simulate.ts";

const db = useTestDatabase();

test("workers join, die, hang, return and leave, and no law is violated", async () => {
  const options = { workers: 4, keys: 30, jobs: 400, seconds: 5, leaseSeconds: 0.6, seed: 3 };
  const simulation = await simulate(db.pool, db, options);
  const { history, changes, violations } = simulation;
  expect(violations).toEqual([]);
  expect(history.attempts.filter(isCompletion)).toHaveLength(400);
  expect(history.attempts.length).toBeGreaterThan(400);
  expect(simulation.doneByOwners).toBeGreaterThan(200);
  expect(changes.length).toBeGreaterThan(2);
  for (const { owners } of changes) expect(owners).toHaveLength(bucketCount);
  expect(report(simulation)).toContain("violations: 0");
  expect(ringChart(simulation)).toMatch(/^<svg .*<\/svg>\n$/s);
}, 120_000);

test("every kind of event is in a plan, and a seed gives the same plan again", () => {
  const options = { workers: 8, seconds: 30, everyMs: 2_500, hangMs: 5_000, seed: 1 };
  const events = planEvents(options);
  expect(new Set(events.map(({ kind }) => kind))).toEqual(
    new Set(["join", "die", "hang", "go on", "return", "leave"]),
  );
  expect(planEvents(options)).toEqual(events);
});

describe("the check finds", () => {
  /** An attempt from `from` to `to`, with a lease of 100 ms from its start. */
  const attempt = (
    place: number,
    from: number,
    to: number | null,
    fields: Partial<Attempt> = {},
  ): Attempt => ({
    worker: "w1",
    key: "a",
    place,
    generation: BigInt(from),
    leaseExpiresMs: from + 100,
    startedAt: { order: from, ms: from },
    endedAt: to === null ? null : { order: to, ms: to },
    outcome: to === null ? null : "complete",
    isApplied: to === null ? null : true,
    ...fields,
  });
  const check = (jobs: number, ...attempts: Attempt[]) => {
    return findViolations({ enqueued: new Map([["a", jobs]]), attempts });
  };

  test("nothing wrong with jobs in order, a retry, a run and a lease that ran out", () => {
    const retry = { outcome: "retry" } as const;
    const died = attempt(3, 70, null);
    expect(
      check(
        5,
        attempt(0, 10, 20),
        attempt(1, 30, 40, retry),
        attempt(1, 41, 50),
        attempt(2, 60, 65, { generation: 60n }),
        { ...died, generation: 60n },
        attempt(3, 180, 190, { worker: "w2" }),
        attempt(4, 191, 199, { worker: "w2" }),
      ),
    ).toEqual([]);
  });

  test("a job that was never completed, and one that was completed twice", () => {
    expect(check(1, attempt(0, 10, 20, { isApplied: false }))).toEqual([
      "job 0 of key a was completed 0 times",
    ]);
    expect(check(1, attempt(0, 10, 20), attempt(0, 30, 40))).toContain(
      "job 0 of key a was completed 2 times",
    );
  });

  test("a job that started before the one before it was completed", () => {
    const late = check(2, attempt(0, 10, 40), attempt(1, 30, 50, { worker: "w2", generation: 30n }));
    expect(late).toContain("job 1 of key a was started by w2 before the job before it was completed");
    const refused = check(
      2,
      attempt(0, 10, 20, { isApplied: false }),
      attempt(1, 30, 40),
      attempt(0, 50, 60),
    );
    expect(refused).toContain("job 1 of key a was started by w1 before the job before it was completed");
  });

  test("a key in two hands, unless the first lease ran out", () => {
    const other = { worker: "w2", isApplied: false } as const;
    expect(check(1, attempt(0, 10, 60), attempt(0, 50, 55, other))).toContain(
      "job 0 of key a was started by w2 while w1 had its key",
    );
    expect(check(1, attempt(0, 10, null), attempt(0, 110, 120))).toEqual([]);
    expect(check(1, attempt(0, 10, null), attempt(0, 110, 120, { generation: 5n }))).not.toEqual([]);
  });

  test("a job that was settled with an old lease", () => {
    const stale = check(1, attempt(0, 10, 150), attempt(0, 120, 140, { worker: "w2", isApplied: false }));
    expect(stale).toEqual(["job 0 of key a was settled by w1 with an old lease"]);
  });
});

test("an invalid flag is an error that says what it takes", () => {
  expect(parseFlags(["--workers", "1"])).toBe('--workers takes a number from 3 to 64, not "1"');
  expect(parseFlags(["--seconds", "soon"])).toMatch(/not "soon"$/);
  expect(parseFlags(["--speed", "3"])).toMatch(/--speed/);
  expect(parseFlags(["--jobs", "50", "--out", "x.svg"])).toMatchObject({
    jobs: 50,
    workers: 8,
    out: "x.svg",
  });
  expect(usage).toContain("--lease-seconds");
});
