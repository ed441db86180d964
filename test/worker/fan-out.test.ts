// Drains in their own invocations: the route that starts one, and the binding SELF that a round starts them through.
// test/worker/api.test.ts tests the real binding, which leads to the Worker of wrangler.toml and its database.
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { signDrain } from "../../src/edge/drain-call.ts";
import { defineJob } from "../../src/index.ts";
import { adminKey, useDeployment } from "./deployment.ts";

const { call, enqueueMany, fire, query } = useDeployment([
  defineJob("echo", { payload: z.object({ n: z.number() }), timeoutSeconds: 10, run: ({ n }) => n }),
]);
const oldKey = "sk_the_key_before_the_rotation";
const numbers = (count: number) => Array.from({ length: count }, (_, n) => ({ n }));
const rounds = () => query("select queue, claimed, completed, reason from sluice.round order by queue");

describe("a drain round without the Worker's binding to itself", () => {
  test("drains all queues in its own invocation, with one drain for each", async () => {
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
  test("starts at most as many invocations as Cloudflare allows, and a large queue keeps no other queue out", async () => {
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

  test("fails if the binding does, and loses no job", async () => {
    await enqueueMany("echo", numbers(1));
    const refusing = { fetch: async () => new Response("no", { status: 500 }) };
    await expect(fire("* * * * *", { SELF: refusing })).rejects.toThrow("1 of 1 drains failed");
    await fire();
    expect(await rounds()).toMatchObject([{ completed: 1 }]);
  });
});

describe("the request that a round sends through SELF", () => {
  test("contains no admin key, old or new", async () => {
    await enqueueMany("echo", numbers(1));
    const sent: string[] = [];
    const listening = {
      fetch: async (url: string, init: RequestInit) => {
        sent.push(JSON.stringify([url, init, [...new Headers(init.headers)]]));
        return Response.json({});
      },
    };
    await fire("* * * * *", { SELF: listening, SLUICE_ADMIN_KEY_PREVIOUS: oldKey });
    expect(sent).toHaveLength(1);
    for (const key of [adminKey, oldKey]) expect(sent[0]).not.toContain(key);
  });

  test.each([
    ["the same key", {}, {}],
    [
      "a new key, and the sender has old settings",
      { SLUICE_ADMIN_KEY: oldKey },
      { SLUICE_ADMIN_KEY_PREVIOUS: oldKey },
    ],
    [
      "an old key, and the sender has new settings",
      { SLUICE_ADMIN_KEY_PREVIOUS: oldKey },
      { SLUICE_ADMIN_KEY: oldKey },
    ],
  ])("is accepted by a Worker with %s", async (_, sender, receiver) => {
    await enqueueMany("echo", numbers(5));
    const self = { fetch: (url: string, init: RequestInit) => call(new URL(url).pathname, init, receiver) };
    await fire("* * * * *", { ...sender, SELF: self });
    expect(await rounds()).toMatchObject([{ claimed: 5, completed: 5 }]);
  });

  test("is refused by a Worker with another key", async () => {
    await enqueueMany("echo", numbers(5));
    const other = { SLUICE_ADMIN_KEY: "sk_of_another_worker_altogether" };
    const self = { fetch: (url: string, init: RequestInit) => call(new URL(url).pathname, init, other) };
    await expect(fire("* * * * *", { SELF: self })).rejects.toThrow("1 of 1 drains failed");
    expect(await rounds()).toEqual([]);
  });
});

describe("POST /internal/drains/:queue", () => {
  const minuteMs = 60_000;
  const signed = (queue: string, nowMs: number) => signDrain([adminKey], { queue, nowMs });

  test.each([
    ["no key", async () => ""],
    ["another key", async () => "Bearer sk_another_key_of_some_length"],
    ["the admin key", async () => `Bearer ${adminKey}`],
    ["no signature", async () => `Drain ${Date.now()}`],
    ["a made-up signature", async () => `Drain ${Date.now()} ${"A".repeat(43)}= %%%`],
    ["the signature of another queue", () => signed("other", Date.now())],
    ["a signature from two minutes ago", () => signed("default", Date.now() - 2 * minuteMs)],
    ["a signature from two minutes ahead", () => signed("default", Date.now() + 2 * minuteMs)],
    ["a signature without a time", () => signed("default", Number.NaN)],
  ])("with %s drains nothing", async (_, authorization) => {
    await enqueueMany("echo", numbers(5));
    const headers = { authorization: await authorization() };
    expect((await call("/internal/drains/default", { method: "POST", headers })).status).toBe(401);
    expect(await rounds()).toEqual([]);
  });

  test("with a valid signature drains the queue and answers with the counts", async () => {
    await enqueueMany("echo", numbers(5));
    const headers = { authorization: await signed("default", Date.now()) };
    const response = await call("/internal/drains/default", { method: "POST", headers });
    expect(response.status).toBe(200);
    const done = {
      claimed: 5,
      completed: 5,
      failed: 0,
      released: 0,
      lost: 0,
      claimMs: expect.any(Number),
      madeJobs: false,
    };
    expect(await response.json()).toEqual({ queue: "default", ...done, end: "empty" });
  });
});
