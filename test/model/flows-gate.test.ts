// The gate of flows in the size of a CI run. flows-gate.long.test.ts runs it for minutes.
import { expect, test } from "vitest";
import { useTestDatabase } from "../support/test-database.ts";
import { runFlowsGate } from "./flows-gate/flows-gate.ts";
import { nothingWrong } from "./flows-gate/verdict.ts";

const db = useTestDatabase();
const jobs = 2_000;

test(`${jobs} jobs that wait for each other: nobody is stuck, none starts early or twice, and every snapshot is right`, async () => {
  const seed = Number(process.env.SLUICE_GATE_SEED ?? Date.now() % 1_000_000);
  const report = await runFlowsGate(db.pool, { seed, jobs, openMs: 300 });
  const details = JSON.stringify(report, null, 2);
  expect(report, details).toMatchObject(nothingWrong);
  expect(report.waited, details).toBeGreaterThan(jobs / 4);
  expect(report.checks, details).toBeGreaterThan(5);
  for (const what of [
    "continuations",
    "suspends",
    "signals",
    "replays",
    "resolves",
    "cancels",
    "cancels rolled back",
    "prunes",
    "deletes",
  ])
    expect(report.counts[what], what).toBeGreaterThan(0);
});
