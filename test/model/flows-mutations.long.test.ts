// The gate of flows in its short form notices each mutation by itself too, but for one. It takes some tens of seconds for each.
import { describe, expect, test } from "vitest";
import { rewriteFunction } from "../support/rewrite-function.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { runFlowsGate } from "./flows-gate/flows-gate.ts";
import { flowScenarios } from "./flows-gate/mutations.ts";
import { nothingWrong } from "./flows-gate/verdict.ts";

const load = { jobs: 2_000, openMs: 300 };
const tries = 3;

describe.each(flowScenarios.filter(({ isRare }) => !isRare))("mutation: $title", ({ mutations }) => {
  const db = useTestDatabase();

  test("the gate notices it", async () => {
    for (const mutation of mutations) await rewriteFunction(db.pool, mutation);
    let report: object = {};
    for (let seed = 1; seed <= tries; seed++) {
      report = await runFlowsGate(db.pool, { ...load, seed }).catch((error: Error) => ({
        failed: error.message,
      }));
      if (!isRight(report)) break;
    }
    expect(isRight(report)).toBe(false);
  });
});

function isRight(report: object): boolean {
  return Object.entries(nothingWrong).every(
    ([name, right]) => JSON.stringify((report as Record<string, unknown>)[name]) === JSON.stringify(right),
  );
}
