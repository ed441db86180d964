// The gate in the size of a CI run: no job is lost or done twice. gate.long.test.ts runs it for minutes.
import { expect, test } from "vitest";
import { useTestDatabase } from "../support/test-database.ts";
import { runGate } from "./gate/gate.ts";

const db = useTestDatabase();
const jobs = 6_000;

test(`${jobs} jobs with open transactions, rollbacks, expired leases and stale workers: none is lost or done twice`, {
  timeout: 120_000,
}, async () => {
  const seed = Number(process.env.SLUICE_GATE_SEED ?? Date.now() % 1_000_000);
  const report = await runGate(db.pool, { seed, jobs, openMs: 3_500, jobsPerCall: 60, lanes: 4 });
  const details = JSON.stringify(report, null, 2);
  expect(report, details).toMatchObject({
    lost: 0,
    duplicated: 0,
    phantom: 0,
    appliedTwice: 0,
    misreported: 0,
    staleApplied: 0,
    unbalanced: [],
  });
  expect(report.committed, details).toBeGreaterThanOrEqual(jobs);
  expect(report.staleSent, details).toBeGreaterThan(0);
  expect(report.rolledBack, details).toBeGreaterThan(0);
  expect(report.checks, details).toBeGreaterThan(100);
});
