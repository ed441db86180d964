import { expect, test } from "vitest";
import { percentilesOf } from "../../src/core/durations.ts";

const bounds = [1, 10, 100];

test("no jobs have no percentiles", () => {
  expect(percentilesOf(undefined, bounds)).toBeNull();
  expect(percentilesOf({}, bounds)).toBeNull();
});

test("the jobs of a bucket count as spread evenly over it", () => {
  expect(percentilesOf({ 0: 100 }, bounds)).toEqual({ jobs: 100, p50Seconds: 0.5, p95Seconds: 0.95 });
  expect(percentilesOf({ 1: 20 }, bounds)).toEqual({
    jobs: 20,
    p50Seconds: 5.5,
    p95Seconds: expect.closeTo(9.55),
  });
});

test("a percentile lies in the bucket that has the job of that place", () => {
  const { p50Seconds, p95Seconds } = percentilesOf({ 0: 60, 2: 40 }, bounds) ?? {
    p50Seconds: 0,
    p95Seconds: 0,
  };
  expect(p50Seconds).toBeCloseTo(50 / 60);
  expect(p95Seconds).toBeCloseTo(10 + (35 / 40) * 90);
});

test("of jobs beyond the last bound only that bound is known", () => {
  expect(percentilesOf({ 3: 4 }, bounds)).toEqual({ jobs: 4, p50Seconds: 100, p95Seconds: 100 });
});
