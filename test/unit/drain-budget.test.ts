import { expect, test } from "vitest";
import { type DrainBudget, drainEnd } from "../../src/core/policy/drain-budget.ts";

const budget: DrainBudget = { claimForMs: 25_000, subrequests: 50, batchSize: 100, maxTimeoutSeconds: 840 };

test("a drain goes on while there is more, time and subrequests for another batch", () => {
  expect(drainEnd(budget, { elapsedMs: 24_999, subrequests: 48, hasMore: true })).toBeNull();
});

test("a drain ends when nothing is left, whatever else is spent", () => {
  expect(drainEnd(budget, { elapsedMs: 30_000, subrequests: 50, hasMore: false })).toBe("empty");
});

test("a drain claims no more once its time for claiming is over", () => {
  expect(drainEnd(budget, { elapsedMs: 25_000, subrequests: 2, hasMore: true })).toBe("time");
});

test("a drain claims no batch that it could not settle with the subrequests left", () => {
  expect(drainEnd(budget, { elapsedMs: 1, subrequests: 49, hasMore: true })).toBe("subrequests");
});
