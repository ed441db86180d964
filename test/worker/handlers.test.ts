// The kinds of handlers in workerd, and the leases that are extended while they run.
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { defineBatchJob, defineJob, defineReconciledJob } from "../../src/index.ts";
import { crons, useDeployment } from "./deployment.ts";

const log = {
  batches: [] as number[],
  indexed: new Set<string>(),
  gates: [] as (() => void)[],
  aborted: [] as unknown[],
};
const held = defineJob("held", {
  payload: z.object({}),
  run: (_, { signal }) =>
    new Promise<void>((resolve) => {
      log.gates.push(resolve);
      signal.addEventListener("abort", () => void log.aborted.push(signal.reason));
    }),
});
const { bringForward, enqueueMany, fire, look, query } = useDeployment([
  defineBatchJob("bulk", {
    payload: z.object({ n: z.number() }),
    run: async (jobs) => {
      log.batches.push(jobs.length);
      return jobs.map(({ payload: { n } }) => (n === 1 ? { error: new Error("one") } : { output: n * 10 }));
    },
  }),
  defineReconciledJob("index", {
    payload: z.object({ row: z.string() }),
    observe: async (jobs) => jobs.map(({ payload }) => (log.indexed.has(payload.row) ? "there" : "missing")),
    run: ({ row }) => void log.indexed.add(row),
  }),
  defineJob("moved", {
    payload: z.strictObject({ city: z.string() }),
    older: [
      {
        payload: z.strictObject({ town: z.string() }),
        upgrade: ({ town }: { town: string }) => ({ city: town }),
      },
    ],
    run: ({ city }) => city,
  }),
  // Shorter than any deployment may have it, so that the test sees it extended.
  { ...held, leaseSeconds: 1.5 },
]);
const patience = { timeout: 10_000 };

describe("a handler", () => {
  test("of a batch gets all jobs at once and answers for each of them", async () => {
    const [zero = "", one = "", two = ""] = await enqueueMany("bulk", [{ n: 0 }, { n: 1 }, { n: 2 }]);
    await fire();
    expect(log.batches).toEqual([3]);
    expect(await look(zero)).toMatchObject({ status: "completed", output: 0 });
    expect(await look(one)).toMatchObject({ status: "pending", error: "one" });
    expect(await look(two)).toMatchObject({ status: "completed", output: 20 });
  });

  test("of a reconciled job is retried until its effect is observed; only then is the job completed", async () => {
    const [id = ""] = await enqueueMany("index", [{ row: "r1" }]);
    await fire();
    expect(await look(id)).toMatchObject({ status: "pending", attempts: 1 });
    expect(log.indexed).toEqual(new Set(["r1"]));
    await bringForward();
    await fire();
    expect(await look(id)).toMatchObject({ status: "completed", attempts: 1, errors: [] });
  });

  test("gets an older payload upgraded to the current version", async () => {
    const [id = ""] = await enqueueMany("moved", [{ town: "Ulm" }]);
    await fire();
    expect(await look(id)).toMatchObject({ status: "completed", output: "Ulm" });
  });
});

test("leases are extended while handlers run; a lost lease aborts its handler", async () => {
  const [kept = "", lost = ""] = await enqueueMany("held", [{}, {}]);
  const round = fire();
  await expect.poll(() => log.gates.length, patience).toBe(2);
  const [first] = await query<{ deadline: string }>("select deadline::text from sluice.lease");
  const extended = "select from sluice.lease where deadline > $1::timestamptz + interval '0.3 s'";
  await expect.poll(async () => (await query(extended, [first?.deadline])).length, patience).toBe(1);

  // Another call extends one of the two jobs, so it gets a lease of its own, which runs out and is reaped.
  await query(
    "select from sluice.extend(array[$1]::uuid[], (select array_agg(key) from sluice.lease), 3000)",
    [kept],
  );
  await query("update sluice.lease set deadline = now() - interval '1 s' where $1 = any(ids)", [lost]);
  await fire(crons.reap);
  await expect.poll(() => log.aborted, patience).toMatchObject([{ name: "LeaseLostError" }]);
  for (const open of log.gates) open();
  await round;
  expect(await look(kept)).toMatchObject({ status: "completed" });
  expect(await look(lost)).toMatchObject({ status: "pending", attempts: 1 });
});
