// Pullers and partition keys: runs are worked in order, by one handler at a time, and registered pullers share the keys.
import { expect, test } from "vitest";
import type { WorkersResponse } from "../../src/contract/workers.ts";
import { RetryableError } from "../../src/puller/puller.ts";
import { usePullerDeployment } from "../support/puller-deployment.ts";

const { call, db, enqueue, look, pull, relay, statusesOf } = usePullerDeployment();
const patience = { timeout: 30_000, interval: 20 };
const numbers = (count: number) => Array.from({ length: count }, (_, n) => ({ n }));
const leased = async () => (await db.pool.query("select from sluice.lease")).rowCount;

/** A handler that records which jobs of which key ran, and whether two of a key ever ran at once. */
function recorder(work: (n: number, attempt: number) => unknown = () => null) {
  const orderOf = new Map<string, number[]>();
  const workersOf = new Map<string, Set<string>>();
  const running = new Set<string>();
  const overlaps: string[] = [];
  const handlerOf = (worker: string) => ({
    work: async ({ n }: { n: number }, job: { partitionKey: string | null; attempt: number }) => {
      const key = job.partitionKey ?? "";
      if (running.has(key)) overlaps.push(key);
      running.add(key);
      orderOf.set(key, [...(orderOf.get(key) ?? []), n]);
      workersOf.set(key, (workersOf.get(key) ?? new Set()).add(worker));
      try {
        await new Promise((resolve) => setTimeout(resolve, 1));
        return await work(n, job.attempt);
      } finally {
        running.delete(key);
      }
    },
  });
  return { handlerOf, orderOf, workersOf, overlaps };
}

test("jobs of one key run in order and one at a time, over several pullers", async () => {
  const keys = ["a", "b", "c", "d"];
  const ids: string[] = [];
  for (const partitionKey of keys) ids.push(...(await enqueue("work", numbers(40), { partitionKey })));
  const { handlerOf, orderOf, overlaps } = recorder();
  for (const worker of ["w1", "w2", "w3"])
    pull({ workerId: worker, concurrency: 5, maxRun: 7, handlers: handlerOf(worker) });
  await expect.poll(() => statusesOf(ids), patience).toEqual(new Set(["completed"]));
  const inOrder = numbers(40).map(({ n }) => n);
  for (const key of keys) expect(orderOf.get(key)).toEqual(inOrder);
  expect(overlaps).toEqual([]);
  expect(await leased()).toBe(0);
});

test("a run is one claim and one slot", async () => {
  const run = await enqueue("work", numbers(10), { partitionKey: "hot" });
  const { handlerOf, orderOf } = recorder();
  const puller = pull({ concurrency: 10, handlers: handlerOf("w1") });
  await expect.poll(() => statusesOf(run), patience).toEqual(new Set(["completed"]));
  await puller.stop();
  expect(orderOf.get("hot")).toEqual(numbers(10).map(({ n }) => n));
  const [first, second] = relay().to("/v1/claims");
  expect(first?.body).toMatchObject({ limit: 10, max_run: 10 });
  expect(second?.body.limit).toBe(9);
});

test("when a job of a run fails, it runs again before the rest, which has used no attempt", async () => {
  const ids = await enqueue("work", numbers(6), { partitionKey: "a" });
  const { handlerOf, orderOf } = recorder((n, attempt) => {
    if (n === 2 && attempt === 1) throw new RetryableError("once", { retryInSeconds: 0 });
    return attempt;
  });
  const { errors } = pull({ handlers: handlerOf("w1") });
  await expect.poll(() => statusesOf(ids), patience).toEqual(new Set(["completed"]));
  expect(orderOf.get("a")).toEqual([0, 1, 2, 2, 3, 4, 5]);
  const attempts = await Promise.all(ids.map(async (id) => (await look(id)).attempts));
  expect(attempts).toEqual([1, 1, 2, 1, 1, 1]);
  expect(errors.map(({ error }) => error.message)).toEqual(["once"]);
});

test("a puller that stops in a run finishes the job that runs, and releases the rest in order", async () => {
  const ids = await enqueue("work", numbers(5), { partitionKey: "a" });
  const order: number[] = [];
  const puller = pull({
    handlers: {
      work: ({ n }: { n: number }) => {
        order.push(n);
        if (n === 1) puller.stop();
      },
    },
  });
  await puller.done;
  expect(order).toEqual([0, 1]);
  const jobs = await Promise.all(ids.map(look));
  expect(jobs.map(({ status }) => status)).toEqual([
    ...["completed", "completed"],
    ...["pending", "pending", "pending"],
  ]);
  expect(jobs.map(({ attempts }) => attempts)).toEqual([1, 1, 0, 0, 0]);
  expect(await leased()).toBe(0);
  const { handlerOf, orderOf } = recorder();
  pull({ handlers: handlerOf("w2") });
  await expect.poll(() => statusesOf(ids), patience).toEqual(new Set(["completed"]));
  expect(orderOf.get("a")).toEqual([2, 3, 4]);
});

test("a puller that has no more time to stop releases its run, and others work it in order", async () => {
  const ids = await enqueue("work", numbers(4), { partitionKey: "a" });
  const order: string[] = [];
  const slow = pull({
    stopSeconds: 0,
    handlers: {
      work: ({ n }: { n: number }) => {
        order.push(`slow ${n}`);
        return n === 1 ? new Promise(() => {}) : null;
      },
    },
  });
  await expect.poll(() => order, patience).toEqual(["slow 0", "slow 1"]);
  await slow.stop();
  expect(await leased()).toBe(0);
  pull({ handlers: { work: ({ n }: { n: number }) => void order.push(`next ${n}`) } });
  await expect.poll(() => statusesOf(ids), patience).toEqual(new Set(["completed"]));
  expect(order).toEqual(["slow 0", "slow 1", "next 1", "next 2", "next 3"]);
});

test("a puller works a key's next job as soon as it has settled the one before", async () => {
  const ids = await enqueue("work", numbers(10), { partitionKey: "a" });
  const { handlerOf } = recorder();
  const startedAt = Date.now();
  // With a claim for each job. A claim that waits on the server finds the next job only after a second or more.
  pull({ concurrency: 2, maxRun: 1, waitSeconds: 2, handlers: handlerOf("w1") });
  await expect.poll(() => statusesOf(ids), patience).toEqual(new Set(["completed"]));
  expect(Date.now() - startedAt).toBeLessThan(7_500);
});

test("registered pullers divide the keys among them, and leave when they stop", async () => {
  const workers = async () => {
    const answer = (await (await call("GET", "/v1/workers")).json()) as WorkersResponse;
    return answer.workers.map(({ worker_id }) => worker_id).toSorted();
  };
  const { handlerOf, workersOf } = recorder();
  const names = ["w1", "w2"];
  const pullers = names.map((worker) =>
    pull({ workerId: worker, concurrency: 10, handlers: handlerOf(worker) }),
  );
  await expect.poll(workers, patience).toEqual(names);
  const ids: string[] = [];
  for (let n = 0; n < 20; n++) ids.push(...(await enqueue("work", numbers(2), { partitionKey: `key ${n}` })));
  await expect.poll(() => statusesOf(ids), patience).toEqual(new Set(["completed"]));
  expect(workersOf.size).toBe(20);
  expect(new Set([...workersOf.values()].flatMap((set) => [...set]))).toEqual(new Set(names));
  await Promise.all(pullers.map((puller) => puller.stop()));
  expect(await workers()).toEqual([]);
});
