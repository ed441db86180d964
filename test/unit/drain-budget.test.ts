// The budget of a drain: when it stops claiming, which handlers it starts, and how large its next batch is.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  claimingEnd,
  cronBudget,
  type DrainBudget,
  drainsThatFit,
  fitsBeforeEnd,
  hasStatementsToSpare,
  nextBatchSize,
  nudgeBudget,
  shareOf,
} from "../../src/core/policy/drain-budget.ts";

const budget: DrainBudget = {
  claimForMs: 25_000,
  hardEndMs: 840_000,
  subrequests: 50,
  inFlight: 200,
  payloadBytes: 1_000_000,
  maxBatch: 100,
};
const fresh = { elapsedMs: 0, inFlight: 0, subrequests: 0, subrequestsPerJob: 0, last: null };

describe("claiming", () => {
  test("continues while there is time, and subrequests for a claim and two settles", () => {
    expect(claimingEnd(budget, { elapsedMs: 24_999, subrequests: 47 })).toBeNull();
  });

  test("ends when its time is over, long before the hard end", () => {
    expect(claimingEnd(budget, { elapsedMs: 25_000, subrequests: 0 })).toBe("time");
  });

  test("ends while the claimed jobs can still be settled", () => {
    expect(claimingEnd(budget, { elapsedMs: 0, subrequests: 48 })).toBe("subrequests");
  });

  test("leaves a fifth of the subrequests, and those for a batch, for what must be settled", () => {
    expect(hasStatementsToSpare(budget, { subrequests: 37 })).toBe(true);
    expect(hasStatementsToSpare(budget, { subrequests: 38 })).toBe(false);
  });

  test("on the free plan stays within 50 subrequests, including those of the round", () => {
    expect(cronBudget("free").subrequests).toBeLessThanOrEqual(50 - 4);
  });
});

describe("drains that share one invocation", () => {
  test("are at most as many as can each claim, settle and be recorded", () => {
    const free = cronBudget("free");
    const drains = drainsThatFit(free);
    const share = shareOf(free, { drains });
    expect(claimingEnd(share, { elapsedMs: 0, subrequests: 0 })).toBeNull();
    expect(drains * (share.subrequests + 1)).toBeLessThanOrEqual(free.subrequests);
  });
});

describe("a handler is started", () => {
  test("only if its time-out fits before the hard end", () => {
    expect(fitsBeforeEnd(budget, { elapsedMs: 540_000, timeoutSeconds: 300 })).toBe(true);
    expect(fitsBeforeEnd(budget, { elapsedMs: 540_001, timeoutSeconds: 300 })).toBe(false);
  });

  test("by a nudge only if its time-out is short: the default of five minutes is too long", () => {
    expect(fitsBeforeEnd(nudgeBudget("paid"), { elapsedMs: 0, timeoutSeconds: 300 })).toBe(false);
    expect(fitsBeforeEnd(nudgeBudget("paid"), { elapsedMs: 10_000, timeoutSeconds: 15 })).toBe(true);
  });
});

describe("the next batch", () => {
  test("has the maximum size at first", () => {
    expect(nextBatchSize(budget, fresh)).toBe(100);
  });

  test("is as large as the time left allows, at the speed of the last batch", () => {
    const last = { jobs: 40, ms: 10_000 };
    expect(nextBatchSize(budget, { ...fresh, elapsedMs: 20_000, last })).toBe(20);
    expect(nextBatchSize(budget, { ...fresh, elapsedMs: 24_990, last })).toBe(1);
  });

  test("is at most twice as large as the last batch", () => {
    expect(nextBatchSize(budget, { ...fresh, last: { jobs: 10, ms: 1 } })).toBe(20);
  });

  test("leaves room for the jobs in flight, and is empty when there is no room", () => {
    expect(nextBatchSize(budget, { ...fresh, inFlight: 195 })).toBe(5);
    expect(nextBatchSize(budget, { ...fresh, inFlight: 200 })).toBe(0);
  });

  test("is bounded by the subrequests that its handlers send", () => {
    expect(nextBatchSize(budget, { ...fresh, subrequests: 7, subrequestsPerJob: 4 })).toBe(10);
  });

  test("never exceeds a limit and is never negative", () => {
    const state = fc.record({
      elapsedMs: fc.nat(30_000),
      inFlight: fc.nat(250),
      subrequests: fc.nat(47),
      subrequestsPerJob: fc.nat(5),
      last: fc.option(fc.record({ jobs: fc.nat(100), ms: fc.nat(60_000) })),
    });
    fc.assert(
      fc.property(state, (spent) => {
        const size = nextBatchSize(budget, spent);
        const paid = spent.subrequests + size * spent.subrequestsPerJob;
        return size >= 0 && size <= 100 && (size === 0 || (size + spent.inFlight <= 200 && paid <= 50));
      }),
    );
  });
});
