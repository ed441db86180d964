// Would the gate notice? The two ways in which a cursor loses jobs, put in on purpose, each in a database of its own.
import { describe, expect, test } from "vitest";
import { runGate } from "../support/gate.ts";
import { useTestDatabase } from "../support/test-database.ts";

// Two lanes, so that each has enough traffic for its cursor to move past every open transaction.
const load = { seed: 7, jobs: 2_500, openMs: 1_500, jobsPerCall: 40, lanes: 2 };
const timeout = 180_000;

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
    await db.pool.query(`
      create or replace function
        sluice.note_gaps(p_holders text[], p_open text[], p_lane int, p_known bigint, p_low bigint)
      returns void language plpgsql as 'begin end'`);
    expect((await runGate(db.pool, load)).lost).toBeGreaterThan(0);
  });
});

describe.concurrent("cursors that do not know that a rollback leaves them where they were moved to", () => {
  const db = useTestDatabase();
  test("lose jobs, and the gate sees it", { timeout }, async () => {
    // Each gap then begins where the cursor stands, and goes with the transaction that moved it.
    await db.pool.query(`
      create or replace function sluice.known_low(p_sighting sluice.cursor_sighting, p_lane int)
      returns bigint language sql volatile as $$
        select case when p_lane = 0 then sluice.scheduled_low()
                    else (select coalesce(pg_sequence_last_value(cursor_sequence), 0) from sluice.lane where lane = p_lane)
               end
      $$`);
    expect((await runGate(db.pool, load)).lost).toBeGreaterThan(0);
  });
});
