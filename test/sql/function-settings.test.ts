// What every function is declared with. Settings are easy to forget on the next function, and only some servers show it.
import { expect, test } from "vitest";
import { useTestDatabase } from "../support/test-database.ts";
import { verbsOf } from "../support/verbs.ts";

const queue = verbsOf(useTestDatabase());

/** Before PostgreSQL 18 a scan that is switched off still has a price, and a high one: the plan is compiled each time. */
test("each function that switches a kind of scan off also switches JIT off", async () => {
  const functions = await queue.query<{ name: string; settings: string[] }>(`
    select proname as name, proconfig as settings
    from pg_proc
    where pronamespace = 'sluice'::regnamespace and proconfig && '{enable_seqscan=off,enable_bitmapscan=off}'
    order by 1`);
  expect(functions.length).toBeGreaterThan(20);
  expect(functions.filter(({ settings }) => !settings.includes("jit=off"))).toEqual([]);
});
