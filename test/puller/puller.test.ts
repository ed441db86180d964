// sluice/puller against a real Worker: what its handlers get, how it settles, and how it stops.
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { definePulledJob, defineSignal } from "../../src/index.ts";
import { FatalError, LeaseLostError, type PulledJob, RetryableError } from "../../src/puller/puller.ts";
import { usePullerDeployment } from "../support/puller-deployment.ts";

const deployment = usePullerDeployment();
const { enqueue, look, pull, statusesOf } = deployment;
const relay = () => deployment.relay();
const patience = { timeout: 20_000, interval: 20 };
const numbers = (count: number) => Array.from({ length: count }, (_, n) => ({ n }));

/** A promise that a test resolves. */
function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

describe("a handler", () => {
  test("gets its payload and job, and its return value is the output", async () => {
    const seen: PulledJob[] = [];
    const [id = ""] = await enqueue("work", [{ n: 4 }], { tags: ["a"], partitionKey: null });
    pull({
      handlers: {
        work: (payload: { n: number }, job) => {
          seen.push(job);
          return { doubled: payload.n * 2 };
        },
      },
    });
    await expect
      .poll(() => look(id), patience)
      .toMatchObject({
        status: "completed",
        output: { doubled: 8 },
      });
    expect(seen).toMatchObject([{ jobId: id, type: "work", attempt: 1, maxAttempts: 5, tags: ["a"] }]);
    expect(seen[0]?.signal.aborted).toBe(false);
    expect(BigInt(seen[0]?.leaseGeneration ?? 0)).toBeGreaterThan(0n);
  });

  test("that throws fails its attempt, and the job is retried after the type's backoff or at its own time", async () => {
    const [plain = "", timed = "", fatal = "", again = ""] = await enqueue("work", [
      { how: "plain" },
      { how: "timed" },
      { how: "fatal" },
      { how: "again" },
    ]);
    const { errors } = pull({
      handlers: {
        work: ({ how }: { how: string }, { attempt }) => {
          if (how === "plain") throw new Error("no paper");
          if (how === "timed") throw new RetryableError("later", { retryInSeconds: 600 });
          if (how === "fatal") throw new FatalError("never");
          if (attempt === 1) throw new RetryableError("at once", { retryInSeconds: 0 });
          return attempt;
        },
      },
    });
    await expect.poll(() => look(again), patience).toMatchObject({ status: "completed", output: 2 });
    await expect.poll(() => look(fatal), patience).toMatchObject({ status: "dead", dead_reason: "fatal" });
    await expect.poll(() => look(plain), patience).toMatchObject({ status: "pending", error: "no paper" });
    const waits = await Promise.all(
      [plain, timed].map(async (id) => {
        const job = await look(id);
        return Math.round((Date.parse(job.scheduled_at) - Date.parse(job.errors[0]?.at ?? "")) / 10_000);
      }),
    );
    expect(waits).toEqual([6, 60]);
    expect(errors.map(({ error, job }) => [error.message, job?.jobId])).toEqual(
      expect.arrayContaining([
        ["no paper", plain],
        ["never", fatal],
      ]),
    );
  });

  test("that takes longer than timeoutSeconds has its signal aborted, and fails", async () => {
    const [id = ""] = await enqueue("work", [{}]);
    let reason: unknown;
    pull({
      timeoutSeconds: 0.05,
      handlers: {
        work: (_, { signal }) =>
          new Promise(() => {
            signal.addEventListener("abort", () => {
              reason = signal.reason;
            });
          }),
      },
    });
    await expect
      .poll(() => look(id), patience)
      .toMatchObject({ status: "pending", error: "timed out after 0.05 s" });
    expect(reason).toBeInstanceOf(RetryableError);
  });

  test.each([
    ["a BigInt", 1n],
    ["a NUL character", "\0"],
  ])("that returns %s makes its own job dead, and no other", async (_, bad) => {
    const [first = "", second = ""] = await enqueue("work", [{ bad: true }, { bad: false }]);
    pull({ handlers: { work: (payload) => (payload.bad ? bad : "good") } });
    await expect.poll(() => look(second), patience).toMatchObject({ status: "completed", output: "good" });
    await expect.poll(() => look(first), patience).toMatchObject({ status: "dead", dead_reason: "fatal" });
  });
});

describe("jobs", () => {
  test("of types without a handler are left to others", async () => {
    const [other = ""] = await enqueue("other", [{}]);
    const ids = await enqueue("work", numbers(5));
    pull({ handlers: { work: () => null } });
    await expect.poll(() => statusesOf(ids), patience).toEqual(new Set(["completed"]));
    expect(await look(other)).toMatchObject({ status: "pending" });
  });

  test("run in as many handlers as `concurrency` says, and never in more", async () => {
    const ids = await enqueue("work", numbers(40));
    const all = gate();
    let running = 0;
    let most = 0;
    pull({
      concurrency: 4,
      handlers: {
        work: async () => {
          most = Math.max(most, ++running);
          if (most === 4) all.open();
          await all.opened;
          running--;
        },
      },
    });
    await expect.poll(() => statusesOf(ids), patience).toEqual(new Set(["completed"]));
    expect(most).toBe(4);
    expect(
      Math.max(
        ...relay()
          .to("/v1/claims")
          .map(({ body }) => body.limit),
      ),
    ).toBe(4);
  });

  test("of several queues share the slots: an idle queue keeps one of them", async () => {
    const busy = await enqueue("work", numbers(30), { queue: "busy" });
    const all = gate();
    let most = 0;
    let running = 0;
    pull({
      queues: ["busy", "idle"],
      concurrency: 5,
      handlers: {
        work: async () => {
          most = Math.max(most, ++running);
          if (most === 4) all.open();
          await all.opened;
          running--;
        },
      },
    });
    await expect.poll(() => statusesOf(busy), patience).toEqual(new Set(["completed"]));
    const late = await enqueue("work", numbers(3), { queue: "idle" });
    await expect.poll(() => statusesOf(late), patience).toEqual(new Set(["completed"]));
  });
});

describe("settlements", () => {
  test("of jobs that end together are one request", async () => {
    const ids = await enqueue("work", numbers(100));
    const puller = pull({ concurrency: 100, handlers: { work: () => null } });
    await expect.poll(() => statusesOf(ids), patience).toEqual(new Set(["completed"]));
    await puller.stop();
    expect(relay().to("/v1/claims")[0]?.body.limit).toBe(100);
    expect(relay().to("/v1/settlements")).toHaveLength(1);
  });

  test("that the server refuses for one bad output fail only its own job", async () => {
    const ids = await enqueue("work", numbers(20));
    pull({
      concurrency: 20,
      handlers: { work: ({ n }) => ({ n }) },
      // As if the server did not take this output.
      fetch: (url, init) =>
        fetch(url, {
          ...init,
          body: String(init.body).replace('"output":{"n":7}', '"output":{"n":"\\u0000"}'),
        }),
    });
    const [bad = ""] = ids.splice(7, 1);
    await expect.poll(() => statusesOf(ids), patience).toEqual(new Set(["completed"]));
    await expect
      .poll(() => look(bad), patience)
      .toMatchObject({
        status: "dead",
        error: expect.stringContaining("the output cannot be kept"),
      });
  });

  test("get through when the server was gone for a while, and then the puller works on", async () => {
    const [id = ""] = await enqueue("work", [{}]);
    const [started, finish] = [gate(), gate()];
    const { errors } = pull({
      handlers: {
        work: () => {
          started.open();
          return finish.opened;
        },
      },
    });
    await started.opened;
    await relay().turnOff();
    finish.open();
    await expect.poll(() => errors.length, patience).toBeGreaterThan(0);
    await relay().turnOn();
    await expect.poll(() => look(id), patience).toMatchObject({ status: "completed", attempts: 1 });
    const later = await enqueue("work", numbers(3));
    await expect.poll(() => statusesOf(later), patience).toEqual(new Set(["completed"]));
  });

  test("are sent again when the answer was lost, and count once", async () => {
    const [id = ""] = await enqueue("work", [{}]);
    let lost = 0;
    const { errors } = pull({
      handlers: { work: () => "once" },
      fetch: async (url, init) => {
        const response = await fetch(url, init);
        if (url.endsWith("/v1/settlements") && lost++ < 2) throw new TypeError("connection lost");
        return response;
      },
    });
    await expect.poll(() => lost, patience).toBe(3);
    expect(await look(id)).toMatchObject({ status: "completed", attempts: 1 });
    expect(errors.filter(({ error }) => error instanceof LeaseLostError)).toEqual([]);
  });
});

describe("durable steps", () => {
  test("are stored, and a long sleep gives the job back without using an attempt", async () => {
    const ran: string[] = [];
    const [id = ""] = await enqueue("work", [{}]);
    pull({
      handlers: {
        work: async (_, { step, attempt }) => {
          const one = await step.run("one", () => ran.push("one"));
          await step.sleep("short", 0.1);
          await step.sleep("long", 6);
          const two = await step.run("two", () => ran.push("two"));
          return { one, two, attempt };
        },
      },
    });
    await expect.poll(async () => (await look(id)).status, patience).toBe("pending");
    await expect
      .poll(() => look(id), patience)
      .toMatchObject({
        status: "completed",
        output: { one: 1, two: 2, attempt: 1 },
      });
    expect(ran).toEqual(["one", "two"]);
    const { steps = [] } = await look(id);
    expect(steps.map(({ name }) => name)).toEqual(["one", "sleep:short", "sleep:long", "two"]);
    for (const { started_at, ended_at } of steps)
      expect(Date.parse(ended_at ?? "")).toBeGreaterThanOrEqual(Date.parse(started_at ?? ""));
  });

  test("a wait for a signal gives the job back, and the signal's payload stays the same", async () => {
    const packed = defineSignal("packed", z.object({ parcel: z.string() }));
    const [id = "", late = ""] = await enqueue("work", [{ n: 1 }, { n: 2 }]);
    pull({
      handlers: {
        work: async ({ n }: { n: number }, { step, attempt }) => {
          const timeoutSeconds = n === 1 ? 60 : 0.5;
          const signal = await step.waitFor(packed, `order ${n}`, { timeoutSeconds });
          return { parcel: signal?.parcel ?? null, attempt };
        },
      },
    });
    await expect.poll(async () => (await look(id)).status, patience).toBe("blocked");
    const sent = { key: "order 1", payload: { parcel: "p1" } };
    expect((await deployment.call("POST", "/v1/signals/packed", sent)).status).toBeLessThan(300);
    await expect
      .poll(() => look(id), patience)
      .toMatchObject({ status: "completed", output: { parcel: "p1", attempt: 1 } });
    await expect
      .poll(() => look(late), patience)
      .toMatchObject({ status: "completed", output: { parcel: null } });
  });

  test("children are enqueued once, and their ends come in the order of the payloads", async () => {
    const other = definePulledJob("other", { payload: z.looseObject({ n: z.number() }) });
    const [id = ""] = await enqueue("work", [{}]);
    let runs = 0;
    pull({
      concurrency: 20,
      handlers: {
        work: async (_: object, { step }) => {
          runs++;
          const ends = await step.all(
            "parts",
            other,
            Array.from({ length: 120 }, (__, n) => ({ n })),
          );
          return ends.map(({ status, output }) => (status === "completed" ? output : status));
        },
        other: ({ n }: { n: number }) => {
          if (n === 7) throw new FatalError("no use");
          return n * 2;
        },
      },
    });
    await expect
      .poll(() => look(id), patience)
      .toMatchObject({
        status: "completed",
        output: Array.from({ length: 120 }, (_, n) => (n === 7 ? "dead" : n * 2)),
      });
    expect(runs).toBeGreaterThan(1);
    const { rows } = await deployment.db.pool.query("select count(*)::int as jobs from sluice.job");
    expect(rows).toEqual([{ jobs: 121 }]);
  });

  test("children that the server refuses fail the attempt, and the handler is not told", async () => {
    const unknown = definePulledJob("unknown", { payload: z.looseObject({}) });
    const [id = ""] = await enqueue("work", [{}]);
    let caught: unknown = "nothing";
    pull({
      handlers: {
        work: (_: object, { step }) =>
          step.all("parts", unknown, [{}]).catch((error) => {
            caught = error;
          }),
      },
    });
    await expect
      .poll(() => look(id), patience)
      .toMatchObject({ status: "pending", error: expect.stringContaining('no job type "unknown"') });
    expect(caught).toBe("nothing");
  });

  test("only who holds the lease may start children and look, and only with keys of the job", async () => {
    const [id = ""] = await enqueue("work", [{}]);
    const answer = await deployment.call("POST", "/v1/claims", { worker_id: "w", types: ["work"] });
    const [job] = ((await answer.json()) as { jobs: { lease: string }[] }).jobs;
    const lease = job?.lease ?? "";
    const start = (body: object) => deployment.call("POST", `/v1/jobs/${id}/children`, body);
    const child = { type: "other", payload: {}, idempotency_key: `${id}:a:0` };
    expect((await start({ lease, jobs: [{ ...child, idempotency_key: "a" }] })).status).toBe(400);
    const [first, second] = [
      await (await start({ lease, jobs: [child] })).json(),
      await (await start({ lease, jobs: [child] })).json(),
    ];
    expect(second).toEqual(first);
    await deployment.call("POST", `/v1/jobs/${id}/complete`, { lease });
    expect((await start({ lease, jobs: [child] })).status).toBe(409);
    expect((await deployment.call("POST", `/v1/jobs/${id}/waited`, { lease })).status).toBe(409);
  });
});

test("a handler whose job is cancelled is stopped within 10 s, and the job is not retried", async () => {
  const stopped = gate();
  let reason: unknown;
  const [id = ""] = await enqueue("work", [{}]);
  pull({
    handlers: {
      work: (_, { signal }) =>
        new Promise(() => {
          signal.addEventListener("abort", () => {
            reason = signal.reason;
            stopped.open();
          });
        }),
    },
  });
  await expect.poll(async () => (await look(id)).status, patience).toBe("processing");
  const askedMs = Date.now();
  expect((await deployment.call("POST", `/v1/jobs/${id}/cancel`, { running: true })).status).toBe(202);
  await stopped.opened;
  expect(Date.now() - askedMs).toBeLessThan(10_000);
  expect(reason).toMatchObject({ name: "CancelledError" });
  await expect.poll(() => look(id), patience).toMatchObject({ status: "cancelled", errors: [] });
});
