// The gate notices lost jobs: each of two mutations of the cursors, in its own database, must lose some.
import { describe, expect, test } from "vitest";
import { rewriteFunction } from "../support/rewrite-function.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { runGate } from "./gate/gate.ts";

// With two lanes, each has enough jobs for its cursor to pass every open transaction.
const load = { seed: 7, jobs: 2_500, openMs: 1_500, jobsPerCall: 40, lanes: 2 };
const timeout = 180_000;

describe.concurrent("the engine's cursors", () => {
  const db = useTestDatabase();
  test("lose no job under the load that the mutations get", { timeout }, async () => {
    const report = await runGate(db.pool, load);
    expect(report, JSON.stringify(report)).toMatchObject({
      lost: 0,
      duplicated: 0,
      phantom: 0,
      unbalanced: [],
    });
  });
});

describe.concurrent("mutation: cursors that pass open transactions and record no gap", () => {
  const db = useTestDatabase();
  test("lose jobs, and the gate notices", { timeout }, async () => {
    await rewriteFunction(db.pool, {
      name: "advance_cursors",
      from: "from unnest(v_open_writers) as writer\n",
      to: "from unnest('{}'::text[]) as writer\n",
    });
    expect((await runGate(db.pool, load)).lost).toBeGreaterThan(0);
  });
});

describe.concurrent("mutation: cursors that drop a gap while its transaction is still open", () => {
  const db = useTestDatabase();
  test("lose jobs, and the gate notices", { timeout }, async () => {
    await rewriteFunction(db.pool, {
      name: "advance_cursors",
      from: " where writer <> all(v_open_writers)",
      to: "",
    });
    expect((await runGate(db.pool, load)).lost).toBeGreaterThan(0);
  });
});
