// The nudge in workerd: an enqueue starts its job at once, and a burst of enqueues starts few drains.
import { describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { createClient } from "../../src/client/client.ts";
import { defineJob } from "../../src/index.ts";
import { nudge } from "../../src/sql/in-transaction.ts";
import { adminKey, useDeployment } from "./deployment.ts";

const gates: (() => void)[] = [];
const deployment = useDeployment([
  defineJob("echo", { payload: z.object({ n: z.number() }), timeoutSeconds: 10, run: ({ n }) => n }),
  defineJob("gated", {
    payload: z.object({}),
    timeoutSeconds: 10,
    run: () => new Promise<void>((open) => gates.push(open)),
  }),
  defineJob("long", { payload: z.object({}), timeoutSeconds: 60, run: () => {} }),
]);
const { call, enqueue, enqueueMany, look, query, quiet, fire } = deployment;

const nudges = async () =>
  (await query<{ n: number }>("select count(*)::int as n from sluice.round where kind = 'nudge'"))[0]?.n ?? 0;
const completed = async () =>
  (await query<{ n: number }>("select coalesce(sum(completed), 0)::int as n from sluice.books"))[0]?.n;

describe("an enqueue", () => {
  test("starts its job in less than 100 ms at the median", async () => {
    for (let n = 0; n < 100; n++) await enqueue({ type: "echo", payload: { n } });
    await quiet();
    const rows = await query<{ ms: number }>(
      "select (extract(epoch from started_at - created_at) * 1000)::float8 as ms from sluice.jobs order by 1",
    );
    const ms = rows.map((row) => row.ms);
    expect(ms).toHaveLength(100);
    const [median = Number.NaN, p95 = Number.NaN] = [ms[50], ms[95]];
    console.log(`enqueue to start, by nudge: p50 ${median.toFixed(1)} ms, p95 ${p95.toFixed(1)} ms`);
    expect(median).toBeLessThan(100);
  });

  test("starts its job at once while a slow job of the same queue is running", async () => {
    await enqueue({ type: "gated" });
    await expect.poll(() => gates.length).toBe(1);
    const quick = await enqueue({ type: "echo", payload: { n: 1 } });
    await expect.poll(async () => (await look(quick)).status, { timeout: 3000 }).toBe("completed");
    gates[0]?.();
    await quiet();
    expect(await completed()).toBe(2);
  });

  test("leaves a type that may outlast the invocation to the cron", async () => {
    const id = await enqueue({ type: "long" });
    await quiet();
    expect(await look(id)).toMatchObject({ status: "pending", attempts: 0 });
    await fire();
    expect(await look(id)).toMatchObject({ status: "completed" });
  });
});

describe("a job that was enqueued by SQL starts at once", () => {
  const send = (url: string, init: RequestInit) => call(new URL(url).pathname, init);
  const ways: Record<string, () => Promise<unknown>> = {
    "after POST /v1/nudge": () => call("/v1/nudge", { method: "POST" }),
    "after a nudge of its queue": () => call("/v1/nudge", { method: "POST", body: `{"queue":"default"}` }),
    "after a line of sluice/sql": () => nudge({ SLUICE: { fetch: send }, SLUICE_KEY: adminKey }),
    "after a call of the client": () =>
      createClient({ url: "https://x", key: adminKey, fetch: send }).nudge(),
  };
  test.each(Object.entries(ways))("%s", async (_, way) => {
    const [id = ""] = await enqueueMany("echo", [{ n: 1 }]);
    await way();
    await quiet();
    expect((await look(id)).status).toBe("completed");
  });

  test("not if another queue was nudged, and a name that is none is a 400", async () => {
    const [id = ""] = await enqueueMany("echo", [{ n: 1 }]);
    const answer = await call("/v1/nudge", { method: "POST", body: `{"queue":"other"}` });
    expect([answer.status, await answer.json()]).toEqual([202, { queues: ["other"] }]);
    await quiet();
    expect((await look(id)).status).toBe("pending");
    expect((await call("/v1/nudge", { method: "POST", body: `{"queue":"?"}` })).status).toBe(400);
  });

  test("a nudge that does not get through is no error", async () => {
    const fetchNothing = () => Promise.reject(new Error("no route"));
    expect(await nudge({ SLUICE: { fetch: fetchNothing }, SLUICE_KEY: adminKey })).toBe(false);
    expect(await nudge({ SLUICE: { fetch: send }, SLUICE_KEY: "sk_unknown" })).toBe(false);
  });
});

test("300 enqueues in a burst are completed by a few drains, not by hundreds", async () => {
  const fetched = vi.spyOn(globalThis, "fetch");
  await Promise.all(Array.from({ length: 300 }, (_, n) => enqueue({ type: "echo", payload: { n } })));
  await quiet();
  expect(await completed()).toBe(300);
  // Drains that find nothing are not recorded, so their claims are counted.
  const claims = fetched.mock.calls.filter(([, init]) => String(init?.body).includes(".claim("));
  fetched.mockRestore();
  console.log(`300 enqueues at once: ${claims.length} claims, ${await nudges()} drains that found work`);
  expect(await nudges()).toBeGreaterThan(0);
  expect(claims.length).toBeLessThan(50);
});
