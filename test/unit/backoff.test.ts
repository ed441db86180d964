// The backoff formula: it grows with each attempt and stays within its limits.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { backoffSeconds, defaultBackoff } from "../../src/core/policy/backoff.ts";

describe("backoff", () => {
  test("doubles from 30 s with each attempt and stays at an hour", () => {
    const waits = [1, 2, 3, 7, 8, 20].map((attempt) =>
      backoffSeconds(defaultBackoff, { attempt, random: 0 }),
    );
    expect(waits).toEqual([30, 60, 120, 1920, 3600, 3600]);
  });

  test("never falls with the attempt, and never exceeds its maximum plus jitter", () => {
    const policy = fc.record({
      baseSeconds: fc.integer({ min: 1, max: 600 }),
      maxSeconds: fc.integer({ min: 1, max: 86_400 }),
      jitterSeconds: fc.integer({ min: 0, max: 600 }),
    });
    fc.assert(
      fc.property(
        policy,
        fc.integer({ min: 1, max: 19 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (backoff, attempt, random) => {
          const wait = backoffSeconds(backoff, { attempt, random });
          const next = backoffSeconds(backoff, { attempt: attempt + 1, random });
          return wait <= next && wait > 0 && wait < backoff.maxSeconds + Math.max(backoff.jitterSeconds, 1);
        },
      ),
    );
  });
});
