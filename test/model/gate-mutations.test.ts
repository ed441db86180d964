// Would the gate notice? The two ways in which a cursor loses jobs, put in on purpose, each in a database of its own.
import { describe, expect, test } from "vitest";
import { runGate } from "../support/gate.ts";
import { useTestDatabase } from "../support/test-database.ts";

// Two lanes, so that each has enough traffic for its cursor to move past every open transaction.
const load = { seed: 7, jobs: 2_500, openMs: 1_500, jobsPerCall: 40, lanes: 2 };
const timeout = 180_000;
const signature = "sluice.may_pass(p_open text[], p_lane int, p_low bigint) returns boolean";

describe.concurrent("the cursors of the engine", () => {
  const db = useTestDatabase();
  test("lose no job under a load made to lose them", { timeout }, async () => {
    const report = await runGate(db.pool, load);
    expect(report, JSON.stringify(report)).toMatchObject({
      lost: 0,
      duplicated: 0,
      phantom: 0,
      unbalanced: [],
    });
  });
});

describe.concurrent("cursors that pass open transactions and leave no gap", () => {
  const db = useTestDatabase();
  test("lose jobs, and the gate sees it", { timeout }, async () => {
    await db.pool.query(`create or replace function ${signature} language sql as 'select true'`);
    expect((await runGate(db.pool, load)).lost).toBeGreaterThan(0);
  });
});

describe.concurrent("cursors that pass in the transaction that writes the gap", () => {
  const db = useTestDatabase();
  test("lose jobs when it is rolled back, and the gate sees it", { timeout }, async () => {
    await db.pool.query(`
      create or replace function ${signature} language sql as $$
        insert into sluice.cursor_gap (holder, lane, from_seq)
        select holder, p_lane, p_low from unnest(p_open) as holder on conflict do nothing;
        select true
      $$`);
    expect((await runGate(db.pool, load)).lost).toBeGreaterThan(0);
  });
});
