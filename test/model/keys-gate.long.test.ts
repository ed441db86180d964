// The gate of keys, run for minutes by `npm run test:long`. SLUICE_GATE_SEED and SLUICE_GATE_JOBS choose another run.
import { expect, test } from "vitest";
import { useTestDatabase } from "../support/test-database.ts";
import { runKeysGate } from "./keys-gate/keys-gate.ts";
import { nothingWrong } from "./keys-gate/verdict.ts";

const db = useTestDatabase();
const jobs = Number(process.env.SLUICE_GATE_JOBS ?? 20_000);

test(`${jobs} jobs with keys: none is out of order, lost or run by two, and every snapshot is right`, async () => {
  const seed = Number(process.env.SLUICE_GATE_SEED ?? Date.now() % 1_000_000);
  const report = await runKeysGate(db.pool, { seed, jobs, openMs: 2_500, keys: 150 });
  expect(report, JSON.stringify(report, null, 2)).toMatchObject(nothingWrong);
  expect(report.ahead.taken).toBeGreaterThan(200);
  expect(report.moves).toBeGreaterThan(50);
  expect(report.pairs).toBeGreaterThan(5 * jobs);
});
