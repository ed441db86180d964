// The settings of the SQL functions. They are easy to forget in a new function, and only some servers show the effect.
import { expect, test } from "vitest";
import { useTestDatabase } from "../support/test-database.ts";
import { verbsOf } from "../support/verbs.ts";

const queue = verbsOf(useTestDatabase());

/** Before PostgreSQL 18 a disabled scan has a very high cost, so JIT would compile the plan at every call. */
test("each function that disables a kind of scan also disables JIT", async () => {
  const functions = await queue.query<{ name: string; settings: string[] }>(`
    select proname as name, proconfig as settings
    from pg_proc
    where pronamespace = 'sluice'::regnamespace and proconfig && '{enable_seqscan=off,enable_bitmapscan=off}'
    order by 1`);
  expect(functions.length).toBeGreaterThan(20);
  expect(functions.filter(({ settings }) => !settings.includes("jit=off"))).toEqual([]);
});
