// How many subrequests one invocation sends on the free plan. They are counted as Cloudflare does: every fetch.
import { afterEach, beforeEach, describe, expect, type MockInstance, test, vi } from "vitest";
import * as z from "zod";
import { defineJob } from "../../src/index.ts";
import { openInbox } from "../support/inbox.ts";
import { bindings, crons, useDeployment } from "./deployment.ts";

const freePlanSubrequests = 50;
const { fire, enqueueMany, enqueue, query, quiet, databaseUrl } = useDeployment(
  [
    defineJob("echo", { payload: z.object({ n: z.number() }), timeoutSeconds: 10, run: ({ n }) => n }),
    defineJob("staggered", {
      payload: z.object({ n: z.number() }),
      run: ({ n }) => new Promise((resolve) => setTimeout(() => resolve(n), 110 * n)),
    }),
  ],
  { SLUICE_PLAN: "free" },
);
const numbers = (count: number) => Array.from({ length: count }, (_, n) => ({ n }));
const completed = async () =>
  (await query<{ n: number }>("select coalesce(sum(completed), 0)::int as n from sluice.books"))[0]?.n ?? 0;

let fetched: MockInstance<typeof fetch>;
beforeEach(() => {
  fetched = vi.spyOn(globalThis, "fetch");
});
afterEach(() => {
  fetched.mockRestore();
});

async function subrequestsOf(work: () => Promise<unknown>): Promise<number> {
  fetched.mockClear();
  await work();
  return fetched.mock.calls.length;
}

describe("on the free plan, a drain round sends at most 50 subrequests", () => {
  test("with more jobs than it can run: the next round runs the rest", async () => {
    await enqueueMany("echo", numbers(5000));
    const spent = await subrequestsOf(() => fire());
    expect(spent).toBeLessThanOrEqual(freePlanSubrequests);
    expect(spent).toBeGreaterThan(40);
    const done = await completed();
    expect(done).toBeGreaterThan(1000);
    expect(done).toBeLessThan(5000);
    expect(await query("select from sluice.lease")).toEqual([]);
    expect(await query("select reason from sluice.round")).toEqual([{ reason: "subrequests" }]);
  });

  test.each([8, 30])("with %i queues: each round drains some of them", async (queues) => {
    for (let n = 0; n < queues; n++) await enqueueMany("echo", numbers(3), { queue: `queue-${n}` });
    let rounds = 0;
    for (; (await completed()) < queues * 3; rounds++) {
      expect(rounds).toBeLessThan(queues);
      expect(await subrequestsOf(() => fire())).toBeLessThanOrEqual(freePlanSubrequests);
    }
    expect(rounds).toBeGreaterThan(0);
  });

  test("with handlers that end one after another", { timeout: 20_000 }, async () => {
    await enqueueMany("staggered", numbers(52));
    expect(await subrequestsOf(() => fire())).toBeLessThanOrEqual(freePlanSubrequests);
    expect(await completed()).toBe(52);
  });
});

test("on the free plan, a watch round sends at most 50 subrequests, and the next one delivers the remaining notices", async () => {
  for (let n = 0; n < 40; n++) await enqueueMany("echo", numbers(1), { queue: `queue-${n}` });
  const inbox = openInbox(bindings.RECEIVER_URL, "many");
  const settings = {
    SLUICE_ALARM_RULES: JSON.stringify({ queue_length_high: { above: 0, for_rounds: 1 } }),
    SLUICE_ALARM_TARGETS: JSON.stringify([{ name: "chat", url: inbox.url, format: "slack" }]),
    SLUICE_HEARTBEAT_URL: `${inbox.url}/beat`,
  };
  const spent = await subrequestsOf(() => fire(crons.watch, settings));
  expect(spent).toBeLessThanOrEqual(freePlanSubrequests);
  await fire(crons.watch, settings);
  const posts = (await inbox.requests()).filter(({ method }) => method === "POST");
  expect(new Set(posts.map(({ body }) => body)).size).toBe(40);
  expect(posts).toHaveLength(40);
});

test("on the free plan, an enqueue and its nudge send at most 50 subrequests", async () => {
  await enqueueMany("echo", numbers(6000));
  fetched.mockClear();
  // Each has its own connection string, which shows which invocation sent a statement.
  await Promise.all(
    numbers(200).map((payload) =>
      enqueue({ type: "echo", payload }, { DATABASE_URL: `${databaseUrl}?invocation=${payload.n}` }),
    ),
  );
  await quiet();
  const senders = fetched.mock.calls.map(([, init]) =>
    new Headers(init?.headers).get("neon-connection-string"),
  );
  const spent = [...Map.groupBy(senders, (sender) => sender).values()].map((statements) => statements.length);
  expect(spent).toHaveLength(200);
  expect(Math.max(...spent)).toBeLessThanOrEqual(freePlanSubrequests);
  expect(Math.max(...spent)).toBeGreaterThan(40);
});
