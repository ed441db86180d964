// The end of an attempt: when the next one starts, and what it means for the circuit breaker.
import { describe, expect, test } from "vitest";
import type { Outcome } from "../../src/core/job.ts";
import {
  breakerAction,
  countedAttempt,
  shouldOpenBreaker,
  withRetryTime,
} from "../../src/core/policy/attempt-end.ts";

const retry: Outcome = { kind: "retry", message: "down" };
const backoff = { baseSeconds: 10, maxSeconds: 100, jitterSeconds: 4 };

describe("a failed attempt", () => {
  const waitOf = (outcome: Outcome, attempt: number) => {
    const timed = withRetryTime(outcome, { attempt, backoff, random: 0.5 });
    return "retryInSeconds" in timed ? timed.retryInSeconds : undefined;
  };

  test("is retried after the backoff of its type", () => {
    expect([1, 2, 3].map((attempt) => waitOf(retry, attempt))).toEqual([12, 22, 42]);
  });

  test("keeps its own retry time, also zero", () => {
    expect(waitOf({ ...retry, retryInSeconds: 0 }, 3)).toBe(0);
  });

  test("of an unregistered type is retried after the default backoff", () => {
    const timed = withRetryTime(retry, { attempt: 1, backoff: undefined, random: 0 });
    expect(timed).toEqual({ ...retry, retryInSeconds: 30 });
  });

  test("that is the check of a reconciled job counts as the run before it", () => {
    expect(waitOf({ ...retry, uses: 0 }, 3)).toBe(22);
    expect(countedAttempt(3, { kind: "complete", output: null, uses: 0 })).toBe(2);
  });
});

describe("a circuit breaker", () => {
  const outcomes: Outcome[] = [
    { kind: "complete", output: null },
    retry,
    { kind: "bury", message: "never" },
    { kind: "snooze", retryInSeconds: 1 },
    { kind: "release" },
  ];

  test("closes when a probe completes, and at no other outcome of a probe", () => {
    const actions = outcomes.map((outcome) => breakerAction({ isProbe: true }, outcome));
    expect(actions).toEqual(["close", "none", "none", "none", "none"]);
  });

  test("is checked after each failure of a job that is no probe", () => {
    const actions = outcomes.map((outcome) => breakerAction({ isProbe: false }, outcome));
    expect(actions).toEqual(["none", "look", "look", "none", "none"]);
  });

  test("opens when more than 80 % of at least 20 attempts failed", () => {
    const opens = (completed: number, failed: number) =>
      shouldOpenBreaker({ completed, failed, isOnTrial: false });
    expect([opens(3, 17), opens(0, 20)]).toEqual([true, true]);
    expect([opens(4, 16), opens(0, 19), opens(0, 0)]).toEqual([false, false, false]);
  });

  test("opens after only 4 failed attempts while it is on trial", () => {
    const opens = (completed: number, failed: number) =>
      shouldOpenBreaker({ completed, failed, isOnTrial: true });
    expect([opens(0, 4), opens(0, 3), opens(1, 3)]).toEqual([true, false, false]);
  });
});
