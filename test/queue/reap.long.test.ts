// The leases of 100,000 jobs run out together. Reap rounds handle them in short calls, and other calls do not wait.
import { expect, test } from "vitest";
import * as z from "zod";
import { defineJob } from "../../src/jobs/define.ts";
import { reap } from "../../src/queue/reap.ts";
import { differences } from "../support/balance.ts";
import { createTestPorts } from "../support/ports.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { complete, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const verbs = verbsOf(db);
const ports = createTestPorts(db, [defineJob("echo", { payload: z.object({}), run: () => {} })]);
const jobs = 100_000;
const mostPerCall = 2_000 + 99; // the lease that reaches the limit is the last

test("100,000 abandoned jobs become pending over several rounds, in bounded calls", async () => {
  await verbs.query(
    "select count(*) from sluice.enqueue_many('echo', array_fill('{}'::jsonb, array[$1::int]))",
    [jobs],
  );
  for (let claimed = 0; claimed < jobs; claimed += 100) await verbs.claim({ limit: 100, leaseSeconds: -1 });
  expect(await verbs.count("lease")).toBe(jobs / 100);

  const rounds: Awaited<ReturnType<typeof reap>>[] = [];
  let isReaping = true;
  const waits = settleMeanwhile(() => isReaping);
  while ((await verbs.count("lease")) > 0 && rounds.length < 20) rounds.push(await reap(ports));
  isReaping = false;
  const longestMs = Math.max(...(await waits));

  const calls = rounds.flatMap(({ steps }) => steps.leases?.did as { returned: number }[]);
  const ms = rounds.map(({ steps }) => steps.leases?.ms ?? 0);
  process.stdout.write(
    `${rounds.length} rounds, ${calls.length} calls, ${ms.join(" + ")} ms; longest claim and settle ${longestMs.toFixed(0)} ms\n`,
  );
  expect(Math.max(...calls.map(({ returned }) => returned))).toBeLessThanOrEqual(mostPerCall);
  expect(await verbs.query("select from sluice.scheduled where abandonments = 1")).toHaveLength(jobs);
  expect(await differences(verbs)).toEqual([]);
});

/** Enqueues, claims and settles jobs of another queue one by one. Answers with the milliseconds of each. */
async function settleMeanwhile(isRunning: () => boolean): Promise<number[]> {
  const durations: number[] = [];
  while (isRunning()) {
    const beganMs = performance.now();
    await verbs.enqueueOne({ queue: "other" });
    await verbs.settle(await verbs.claim({ queue: "other", limit: 1 }), complete);
    durations.push(performance.now() - beganMs);
  }
  return durations;
}
