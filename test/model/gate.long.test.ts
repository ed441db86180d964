// The gate, run for minutes by `npm run test:long`. SLUICE_GATE_SEED and SLUICE_GATE_JOBS choose another run.
import { expect, test } from "vitest";
import { useTestDatabase } from "../support/test-database.ts";
import { runGate } from "./gate/gate.ts";

const db = useTestDatabase();
const jobs = Number(process.env.SLUICE_GATE_JOBS ?? 60_000);

test(`${jobs} jobs in the gate: none is lost or done twice, and the books balance in every snapshot`, async () => {
  const seed = Number(process.env.SLUICE_GATE_SEED ?? Date.now() % 1_000_000);
  const report = await runGate(db.pool, { seed, jobs, openMs: 3_500, jobsPerCall: 100, lanes: 4 });
  expect(report, JSON.stringify(report, null, 2)).toMatchObject({
    lost: 0,
    duplicated: 0,
    phantom: 0,
    appliedTwice: 0,
    misreported: 0,
    staleApplied: 0,
    unbalanced: [],
  });
});
