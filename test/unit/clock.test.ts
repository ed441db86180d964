// The clock's policy: no acknowledged job waits longer than promised, and an idle database is left alone.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  clockTimes,
  isAsleep,
  isOverdue,
  newClock,
  nextLookMs,
  noteLook,
  startLook,
  tellClock,
  tickClock,
} from "../../src/core/policy/clock.ts";
import { type Enqueue, type LookFault, simulate } from "./clock-world.ts";

const minute = 60_000;
const maxSleepMs = 60 * minute;

/** The time since the one before: in the same moment, near the end of the time that it holds the database awake, or later. */
const gapMs = fc.oneof(
  fc.integer({ min: 0, max: 500 }),
  fc.integer({ min: 50_000, max: 80_000 }),
  fc.integer({ min: 0, max: 10 * minute }),
);
const enqueue = fc.record({
  atMs: gapMs,
  isolate: fc.nat(2),
  delayMs: fc.oneof(fc.constant(0), fc.integer({ min: 100, max: 20 * minute })),
  callMs: fc.integer({ min: 1, max: 1000 }),
  commitMs: fc.oneof(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 8_000, max: 12_000 })),
  isHoldLost: fc.constant(false),
  isDueLost: fc.boolean(),
});
const lostEnqueue = fc
  .tuple(enqueue, fc.boolean())
  .map(([given, isHoldLost]): Enqueue => ({ ...given, isHoldLost }));
const inOrder = (one: fc.Arbitrary<Enqueue>) =>
  fc.array(one, { maxLength: 12 }).map((list) => {
    let atMs = 0;
    return list.map((given) => {
      atMs += given.atMs;
      return { ...given, atMs };
    });
  });
const fault: fc.Arbitrary<LookFault> = fc.record({
  kind: fc.constantFrom("none", "none", "error", "eviction"),
  ms: fc.integer({ min: 1, max: 4000 }),
});

const runs = { numRuns: 500 };
const withinMs = 60_000;
const endMs = 5 * 60 * minute;

describe("in every interleaving of enqueues, visits, alarms and lost calls", () => {
  test(
    "a job whose enqueue was announced is seen when it is due, or when nobody holds the database awake any more",
    () => {
      fc.assert(
        fc.property(inOrder(enqueue), fc.array(fault, { maxLength: 8 }), (enqueues, faults) => {
          const failures = faults.filter(({ kind }) => kind !== "none").length;
          const lateMs = 10_000 + failures * (clockTimes.maxBackoffMs + 4000);
          const { awakeMs, graceMs } = clockTimes;
          for (const job of simulate({ enqueues, faults, maxSleepMs, endMs }).jobs) {
            const promisedMs = Math.max(job.committedMs + awakeMs + graceMs, job.dueMs) + lateMs;
            expect(job.seenMs ?? Number.POSITIVE_INFINITY).toBeLessThanOrEqual(promisedMs);
          }
        }),
        runs,
      );
    },
    withinMs,
  );

  test(
    "a job that nobody could announce is seen when the longest sleep is over",
    () => {
      fc.assert(
        fc.property(inOrder(lostEnqueue), fc.array(fault, { maxLength: 4 }), (enqueues, faults) => {
          for (const job of simulate({ enqueues, faults, maxSleepMs, endMs }).jobs) {
            const promisedMs = Math.max(job.committedMs, job.dueMs) + maxSleepMs + 6 * minute;
            expect(job.seenMs ?? Number.POSITIVE_INFINITY).toBeLessThanOrEqual(promisedMs);
          }
        }),
        runs,
      );
    },
    withinMs,
  );
});

test("a delayed job whose time was told is seen within a quarter of a second", () => {
  const { jobs } = simulate({
    enqueues: Array.from({ length: 50 }, (_, n) => ({
      ...{ atMs: n * 777, isolate: n % 3, delayMs: 3000 + n, callMs: 20, commitMs: 10 },
      ...{ isHoldLost: false, isDueLost: false },
    })),
    ...{ faults: [], maxSleepMs: 0, endMs: 5 * minute },
  });
  const lateMs = jobs.map(({ seenMs, dueMs }) => (seenMs ?? Number.POSITIVE_INFINITY) - dueMs);
  expect(Math.max(...lateMs)).toBeLessThan(250);
});

test.each([
  { hours: 2, most: 0.09 },
  { hours: 4, most: 0.05 },
  { hours: 12, most: 0.02 },
])(
  "an idle database that may sleep for $hours h is touched in under $most of all five minutes",
  ({ hours, most }) => {
    const days = 3;
    const day = 24 * 60 * minute;
    const { touchedMs } = simulate({
      ...{ enqueues: [], faults: [], maxSleepMs: hours * 60 * minute, endMs: days * day },
    });
    const windows = new Set(touchedMs.map((atMs) => Math.floor(atMs / (5 * minute))));
    expect(windows.size / (days * 288)).toBeLessThan(most);
    expect(windows.size).toBeGreaterThanOrEqual((days * 24) / hours - 1);
  },
);

describe("the crons go on", () => {
  const idle = { ...newClock, idleSinceMs: 0 };
  const later = { maxSleepMs };

  test("when the database may not sleep, or has slept for the longest time", () => {
    expect(isAsleep(idle, { nowMs: minute, maxSleepMs: 0 })).toBe(false);
    expect(isAsleep(idle, { nowMs: minute, ...later })).toBe(true);
    expect(isAsleep(idle, { nowMs: maxSleepMs, ...later })).toBe(false);
  });

  test("when somebody may enqueue", () => {
    expect(isAsleep(tellClock(idle, { nowMs: 5, dueMs: null, isWork: true }), { nowMs: 10, ...later })).toBe(
      false,
    );
  });

  test("when an alarm is lost, and /health shows it", () => {
    const told = tellClock(idle, { nowMs: 0, dueMs: 1000, isWork: false });
    expect(isAsleep(told, { nowMs: 30_000, ...later })).toBe(true);
    expect(isAsleep(told, { nowMs: 61_000, ...later })).toBe(false);
    expect([isOverdue(told, 100_000), isOverdue(told, 122_000)]).toEqual([false, true]);
  });

  test("a time is never before what was told, as an alarm has whole milliseconds", () => {
    expect(nextLookMs(tellClock(newClock, { nowMs: 1000, dueMs: 500.2, isWork: false }))).toBe(1501);
  });

  test("on a new clock, until rounds of all kinds have run", () => {
    const { state } = tickClock(newClock, { nowMs: minute, ...later });
    const looked = noteLook(state, {
      ...{ startedMs: minute, nowMs: minute, hasWork: false, dueMs: null, upkeepMs: null },
    });
    expect(isAsleep(looked, { nowMs: 2 * minute, ...later })).toBe(false);
    expect(isAsleep(looked, { nowMs: 4 * minute, ...later })).toBe(true);
  });

  test("a visit that was asked for comes at its time, and leaves the time of the next job alone", () => {
    const told = tellClock(newClock, { nowMs: 0, dueMs: 5000, isWork: false });
    const asked = tellClock(told, { nowMs: 0, dueMs: null, visitMs: 1000, isWork: false });
    expect(nextLookMs(asked)).toBe(1000);
    expect(startLook(asked, 1000)).toMatchObject({ isVisiting: true, dueAtMs: 5000, visitAtMs: null });
  });

  test("a later time never replaces an earlier one", () => {
    const told = tellClock(newClock, { nowMs: 0, dueMs: 5000, isWork: false });
    expect(nextLookMs(tellClock(told, { nowMs: 0, dueMs: 9000, isWork: false }))).toBe(5000);
  });
});
