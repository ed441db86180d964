// Would the gate notice? The two ways in which a cursor loses jobs, put in on purpose, each in a database of its own.
import type pg from "pg";
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
    await rewriteAdvance(
      db.pool,
      "from unnest(v_holders) as holder\n",
      "from unnest('{}'::text[]) as holder\n",
    );
    expect((await runGate(db.pool, load)).lost).toBeGreaterThan(0);
  });
});

describe.concurrent("cursors that move up to what they see now, not to what was given out at the last look", () => {
  const db = useTestDatabase();
  test("lose jobs, and the gate sees it", { timeout }, async () => {
    // Whoever took a seq since then is in no list of holders.
    await rewriteAdvance(db.pool, "v_last.seq", "v_seq");
    expect((await runGate(db.pool, load)).lost).toBeGreaterThan(0);
  });
});

async function rewriteAdvance(pool: pg.Pool, from: string, to: string): Promise<void> {
  const { rows } = await pool.query("select pg_get_functiondef('sluice.advance_cursors'::regproc) as text");
  expect(rows[0].text).toContain(from);
  await pool.query(rows[0].text.replaceAll(from, to));
}
