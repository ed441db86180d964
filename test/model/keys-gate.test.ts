// The gate of keys in the size of a CI run. keys-gate.long.test.ts runs it for minutes.
import { expect, test } from "vitest";
import { useTestDatabase } from "../support/test-database.ts";
import { runKeysGate } from "./keys-gate/keys-gate.ts";
import { nothingWrong } from "./keys-gate/verdict.ts";

const db = useTestDatabase();
const jobs = 2_000;

test(`${jobs} jobs with keys, 16 claimers and every way to end a job: none is out of order, lost or run by two`, async () => {
  const seed = Number(process.env.SLUICE_GATE_SEED ?? Date.now() % 1_000_000);
  const report = await runKeysGate(db.pool, { seed, jobs, openMs: 800, keys: 60 });
  const details = JSON.stringify(report, null, 2);
  expect(report, details).toMatchObject(nothingWrong);
  expect(report.committed, details).toBeGreaterThanOrEqual(jobs);
  expect(report.pairs, details).toBeGreaterThan(jobs);
  expect(report.ahead.taken, details).toBeGreaterThan(0);
  expect(report.moves, details).toBeGreaterThan(0);
  expect(report.staleSent, details).toBeGreaterThan(0);
  expect(report.checks, details).toBeGreaterThan(5);
});
