// Drains as invocations of their own: the route that starts one, and what a round makes of the binding that it needs.
// The real binding is in test/worker/api.test.ts: it leads to the Worker of wrangler.toml and its database.
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { defineJob } from "../../src/index.ts";
import { useDeployment } from "./deployment.ts";

const { call, enqueueMany, fire, query } = useDeployment([
  defineJob("echo", { payload: z.object({ n: z.number() }), timeoutSeconds: 10, run: ({ n }) => n }),
]);
const numbers = (count: number) => Array.from({ length: count }, (_, n) => ({ n }));
const rounds = () => query("select queue, claimed, completed, reason from sluice.round order by queue");

describe("a drain round without the Worker's binding to itself", () => {
  test("drains all queues in its own invocation, one drain for each", async () => {
    await enqueueMany("echo", numbers(1600), { queue: "large" });
    await enqueueMany("echo", numbers(10), { queue: "small" });
    await fire();
    expect(await rounds()).toEqual([
      { queue: "large", claimed: 1600, completed: 1600, reason: "empty" },
      { queue: "small", claimed: 10, completed: 10, reason: "empty" },
    ]);
  });
});

describe("a drain round with the binding", () => {
  test("starts no more invocations than a chain may have, and a large queue takes no other's place", async () => {
    await enqueueMany("echo", numbers(1600), { queue: "large" });
    for (let n = 0; n < 28; n++) await enqueueMany("echo", numbers(1), { queue: `small-${n}` });
    const started: string[] = [];
    const counting = {
      fetch: async (url: string) => {
        started.push(url.split("/").at(-1) ?? "");
        return Response.json({});
      },
    };
    await fire("* * * * *", { SELF: counting });
    expect(started).toHaveLength(30);
    expect(new Set(started).size).toBe(29);
  });

  test("that does not work fails, and loses nothing", async () => {
    await enqueueMany("echo", numbers(1));
    const refusing = { fetch: async () => new Response("no", { status: 500 }) };
    await expect(fire("* * * * *", { SELF: refusing })).rejects.toThrow("1 of 1 drains failed");
    await fire();
    expect(await rounds()).toMatchObject([{ completed: 1 }]);
  });
});

describe("POST /internal/drains/:queue", () => {
  test.each([
    ["no key", {}],
    ["another key", { authorization: "Bearer sk_another_key_of_some_length" }],
  ])("with %s drains nothing", async (_, headers: Record<string, string>) => {
    await enqueueMany("echo", numbers(5));
    expect((await call("/internal/drains/default", { method: "POST", headers })).status).toBe(401);
    expect(await rounds()).toEqual([]);
  });

  test("with the admin key drains the queue and says what it did", async () => {
    await enqueueMany("echo", numbers(5));
    const response = await call("/internal/drains/default", { method: "POST" });
    expect(response.status).toBe(200);
    const done = { claimed: 5, completed: 5, failed: 0, released: 0, lost: 0, claimMs: expect.any(Number) };
    expect(await response.json()).toEqual({ queue: "default", ...done, end: "empty" });
  });
});
