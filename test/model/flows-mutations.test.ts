// Each mutation breaks one rule of flows. A scenario notices it: with the real functions it is right, with the mutation not.
import { describe, expect, test } from "vitest";
import { flowJobsOf } from "../support/flow-jobs.ts";
import { rewriteFunction } from "../support/rewrite-function.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { flowScenarios } from "./flows-gate/mutations.ts";

describe.concurrent.each(flowScenarios)("$title", ({ mutations, run, right }) => {
  const db = useTestDatabase();
  const other = useTestDatabase();

  test("is a mutation that a scenario notices, and without it the scenario is right", async () => {
    expect(await run(flowJobsOf(db.pool), db)).toBe(right);
    for (const mutation of mutations) await rewriteFunction(other.pool, mutation);
    expect(await run(flowJobsOf(other.pool), other)).not.toBe(right);
  });
});
