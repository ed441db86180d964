// The gate in the size of a CI run; gate.long.test.ts is the same for minutes.
import { expect, test } from "vitest";
import { useTestDatabase } from "../support/test-database.ts";
import { runGate } from "./gate/gate.ts";

const db = useTestDatabase();
const jobs = 6_000;

test(`${jobs} jobs under open transactions, rollbacks, expired leases and stale workers: none lost, none done twice`, {
  timeout: 120_000,
}, async () => {
  const seed = Number(process.env.SLUICE_GATE_SEED ?? Date.now() % 1_000_000);
  const report = await runGate(db.pool, { seed, jobs, openMs: 3_500, jobsPerCall: 60, lanes: 4 });
  const told = JSON.stringify(report, null, 2);
  expect(report, told).toMatchObject({
    lost: 0,
    duplicated: 0,
    phantom: 0,
    appliedTwice: 0,
    misreported: 0,
    staleApplied: 0,
    unbalanced: [],
  });
  expect(report.committed, told).toBeGreaterThanOrEqual(jobs);
  expect(report.staleSent, told).toBeGreaterThan(0);
  expect(report.rolledBack, told).toBeGreaterThan(0);
  expect(report.checks, told).toBeGreaterThan(100);
});
