// The gate of flows, run for minutes by `npm run test:long`. SLUICE_GATE_SEED and SLUICE_GATE_JOBS choose another run.
import { expect, test } from "vitest";
import { useTestDatabase } from "../support/test-database.ts";
import { runFlowsGate } from "./flows-gate/flows-gate.ts";
import { nothingWrong } from "./flows-gate/verdict.ts";

const db = useTestDatabase();
const jobs = Number(process.env.SLUICE_GATE_JOBS ?? 20_000);

test(`${jobs} jobs that wait for each other: nobody is stuck, none starts early or twice, and every snapshot is right`, async () => {
  const seed = Number(process.env.SLUICE_GATE_SEED ?? Date.now() % 1_000_000);
  const report = await runFlowsGate(db.pool, { seed, jobs, openMs: 1_000 });
  expect(report, JSON.stringify(report, null, 2)).toMatchObject(nothingWrong);
  expect(report.waited).toBeGreaterThan(jobs / 4);
});
