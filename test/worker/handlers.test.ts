// The kinds of handlers in workerd, and the leases that are kept up while they run.
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { defineBatchJob, defineJob, defineReconciledJob } from "../../src/index.ts";
import { crons, useDeployment } from "./deployment.ts";

const seen = {
  batches: [] as number[],
  indexed: new Set<string>(),
  gates: [] as (() => void)[],
  aborted: [] as unknown[],
};
const held = defineJob("held", {
  payload: z.object({}),
  run: (_, { signal }) =>
    new Promise<void>((resolve) => {
      seen.gates.push(resolve);
      signal.addEventListener("abort", () => void seen.aborted.push(signal.reason));
    }),
});
const { bringForward, enqueueMany, fire, look, query } = useDeployment([
  defineBatchJob("bulk", {
    payload: z.object({ n: z.number() }),
    run: async (jobs) => {
      seen.batches.push(jobs.length);
      return jobs.map(({ payload: { n } }) => (n === 1 ? { error: new Error("one") } : { output: n * 10 }));
    },
  }),
  defineReconciledJob("index", {
    payload: z.object({ row: z.string() }),
    observe: async (jobs) => jobs.map(({ payload }) => (seen.indexed.has(payload.row) ? "there" : "missing")),
    run: ({ row }) => void seen.indexed.add(row),
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
  // Shorter than any deployment may have it, so that its extensions can be watched.
  { ...held, leaseSeconds: 1.5 },
]);
const patience = { timeout: 10_000 };

describe("a handler", () => {
  test("of a batch gets all of it at once and answers for each job", async () => {
    const [zero = "", one = "", two = ""] = await enqueueMany("bulk", [{ n: 0 }, { n: 1 }, { n: 2 }]);
    await fire();
    expect(seen.batches).toEqual([3]);
    expect(await look(zero)).toMatchObject({ status: "completed", output: 0 });
    expect(await look(one)).toMatchObject({ status: "pending", error: "one" });
    expect(await look(two)).toMatchObject({ status: "completed", output: 20 });
  });

  test("of a reconciled job runs until its effect is seen, and only then is the job completed", async () => {
    const [id = ""] = await enqueueMany("index", [{ row: "r1" }]);
    await fire();
    expect(await look(id)).toMatchObject({ status: "pending", attempts: 1 });
    expect(seen.indexed).toEqual(new Set(["r1"]));
    await bringForward();
    await fire();
    expect(await look(id)).toMatchObject({ status: "completed", attempts: 1, errors: [] });
  });

  test("gets an older payload in today's shape", async () => {
    const [id = ""] = await enqueueMany("moved", [{ town: "Ulm" }]);
    await fire();
    expect(await look(id)).toMatchObject({ status: "completed", output: "Ulm" });
  });
});

test("leases are kept up while handlers run, and one that was lost aborts its handler", async () => {
  const [kept = "", lost = ""] = await enqueueMany("held", [{}, {}]);
  const round = fire();
  await expect.poll(() => seen.gates.length, patience).toBe(2);
  const [first] = await query<{ deadline: string }>("select deadline::text from sluice.lease");
  const extended = "select from sluice.lease where deadline > $1::timestamptz + interval '0.3 s'";
  await expect.poll(async () => (await query(extended, [first?.deadline])).length, patience).toBe(1);

  // Somebody takes one of the two away: it is split off, runs out and is reaped.
  await query(
    "select from sluice.extend(array[$1]::uuid[], (select array_agg(key) from sluice.lease), 3000)",
    [kept],
  );
  await query("update sluice.lease set deadline = now() - interval '1 s' where $1 = any(ids)", [lost]);
  await fire(crons.reap);
  await expect.poll(() => seen.aborted, patience).toMatchObject([{ name: "LeaseLostError" }]);
  for (const open of seen.gates) open();
  await round;
  expect(await look(kept)).toMatchObject({ status: "completed" });
  expect(await look(lost)).toMatchObject({ status: "pending", attempts: 1 });
});
