// Pushed jobs in a drain: an invocation has six connections, so few requests are under way at one time, and a job that waits
// for its turn loses nothing.
import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import type { DrainBudget } from "../../src/core/policy/drain-budget.ts";
import { enqueueMany } from "../../src/core/sql/index.ts";
import { defineJob } from "../../src/jobs/define.ts";
import { definePushedJob } from "../../src/jobs/define-pushed.ts";
import { drainQueue } from "../../src/queue/drain/drain.ts";
import type { OutgoingRequest, Sender } from "../../src/queue/ports.ts";
import { createTestPorts, lookAt, roomyBudget } from "../support/ports.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const payload = z.object({});
const pushedType = (timeoutSeconds: number) =>
  definePushedJob("pushed", {
    payload,
    url: "https://example.com/",
    secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    timeoutSeconds,
  });

beforeEach(() => emptyQueue(db.pool));

/** An endpoint that answers after so many milliseconds, and counts the requests that are under way. */
function slowEndpoint(ms: number) {
  const seen = { underWay: 0, most: 0, requests: 0 };
  const send = async (request: OutgoingRequest) => {
    seen.requests++;
    seen.most = Math.max(seen.most, ++seen.underWay);
    const { signal } = request as { signal: AbortSignal };
    await new Promise<void>((resolve, reject) => {
      setTimeout(resolve, ms);
      signal.addEventListener("abort", () => reject(signal.reason));
    }).finally(() => seen.underWay--);
    return { status: 200, retryInSeconds: undefined, errorText: "" };
  };
  return { seen, sender: { send } satisfies Sender };
}

async function drain(options: {
  jobs: number;
  timeoutSeconds: number;
  ms: number;
  budget?: Partial<DrainBudget>;
}) {
  const { seen, sender } = slowEndpoint(options.ms);
  const ports = { ...createTestPorts(db, [pushedType(options.timeoutSeconds)]), sender };
  const ids = await db.run(enqueueMany("pushed", Array(options.jobs).fill({}), {}));
  const report = await drainQueue(ports, { queue: "default", budget: { ...roomyBudget, ...options.budget } });
  return { seen, report, jobs: await Promise.all(ids.map((id) => lookAt(db, id))) };
}

describe("pushed jobs of one drain", () => {
  test("have four requests under way at one time, and none times out while it waits", async () => {
    const { seen, report } = await drain({ jobs: 20, timeoutSeconds: 0.4, ms: 150 });
    expect(seen).toEqual({ underWay: 0, most: 4, requests: 20 });
    expect(report).toMatchObject({ claimed: 20, completed: 20 });
  });

  test("give their connection back when they time out", async () => {
    const { seen, jobs } = await drain({ jobs: 9, timeoutSeconds: 0.05, ms: 60_000 });
    expect(seen.requests).toBe(9);
    expect(jobs.map(({ status, attempts }) => [status, attempts])).toEqual(jobs.map(() => ["pending", 1]));
  });

  test("go back without an attempt if there is no time left when their turn comes", async () => {
    const budget = { hardEndMs: 600 };
    const { seen, report, jobs } = await drain({ jobs: 12, timeoutSeconds: 0.4, ms: 250, budget });
    expect(seen.requests).toBe(4);
    expect(report).toMatchObject({ completed: 4 });
    const back = jobs.filter(({ status }) => status === "pending");
    expect(back.map(({ attempts }) => attempts)).toEqual(Array(8).fill(0));
  });

  test("hold up no other job of the queue", async () => {
    const { seen, sender } = slowEndpoint(300);
    const started: number[] = [];
    const quick = defineJob("quick", { payload, run: () => void started.push(seen.requests) });
    const ports = { ...createTestPorts(db, [pushedType(5), quick]), sender };
    await db.run(enqueueMany("pushed", Array(12).fill({}), {}));
    await db.run(enqueueMany("quick", [{}], {}));
    await drainQueue(ports, { queue: "default", budget: roomyBudget });
    expect(seen.requests).toBe(12);
    expect(started).toEqual([expect.any(Number)]);
    expect(started[0]).toBeLessThanOrEqual(4);
  });
});
