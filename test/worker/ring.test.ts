// Pullers on the ring, over HTTP: a registered worker's claims return jobs of its own buckets, and a change of the workers
// moves buckets to others.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { claimResponse } from "../../src/contract/work.ts";
import { removedWorkerResponse, workerResponse } from "../../src/contract/workers.ts";
import { bucketsOf } from "../../src/core/policy/hash-ring.ts";
import { definePulledJob } from "../../src/index.ts";
import { adminCallsOf } from "./admin-calls.ts";
import { useDeployment } from "./deployment.ts";

const queue = "orders";
const deployment = useDeployment([definePulledJob("pack", { payload: z.object({}), queue })]);
const { ask } = adminCallsOf(deployment);

/** The Worker's clock stops until a test moves it. The database has its own. */
const moveClock = (ms: number) => vi.setSystemTime(Date.now() + ms);
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"] });
});
afterEach(async () => {
  await deployment.quiet();
  vi.useRealTimers();
});

const register = (worker_id: string) =>
  ask("POST /v1/workers", workerResponse, { worker_id, queues: [queue] });
const leave = (id: string) => ask(`DELETE /v1/workers/${id}`, removedWorkerResponse);
const claim = async (worker_id: string, limit = 1000) =>
  (await ask("POST /v1/claims", claimResponse, { worker_id, queue, limit })).jobs;
const enqueue = (keys: readonly (string | null)[]) =>
  ask("POST /v1/jobs/batch", z.object({}), {
    jobs: keys.map((partition_key) => ({ type: "pack", partition_key })),
  });
const keys = Array.from({ length: 90 }, (_, n) => `customer-${n}`);

/** By partition key. */
async function bucketOf(): Promise<(key: string | null) => number | undefined> {
  const rows = await deployment.query<{ key: string; bucket: number }>(
    "select partition_key as key, partition_bucket as bucket from sluice.jobs where partition_key is not null",
  );
  const buckets = new Map(rows.map(({ key, bucket }) => [key, bucket]));
  return (key) => buckets.get(key ?? "");
}

const keysOf = (jobs: readonly { partition_key: string | null }[]) =>
  jobs.map(({ partition_key }) => partition_key).toSorted();

describe("registered workers", () => {
  test("claim the jobs of their own buckets, and together all of them", async () => {
    const ids = ["w1", "w2", "w3"];
    for (const id of ids) await register(id);
    await enqueue(keys);
    const bucket = await bucketOf();
    const claimed = [];
    for (const id of ids) {
      const jobs = await claim(id);
      const own = new Set(bucketsOf(id, ids));
      expect(jobs.length).toBeGreaterThan(10);
      expect(jobs.filter((job) => !own.has(bucket(job.partition_key) ?? -1))).toEqual([]);
      claimed.push(...jobs);
    }
    expect(keysOf(claimed)).toEqual(keys.toSorted());
  });

  test("get all jobs without a partition key, whoever asks first", async () => {
    for (const id of ["w1", "w2"]) await register(id);
    await enqueue(Array.from({ length: 20 }, () => null));
    expect(await claim("w1")).toHaveLength(20);
  });

  test("have the buckets of one that leaves at once", async () => {
    for (const id of ["w1", "w2"]) await register(id);
    await enqueue(keys);
    const first = await claim("w1");
    expect(first.length).toBeLessThan(keys.length);
    await leave("w2");
    expect(keysOf([...first, ...(await claim("w1"))])).toEqual(keys.toSorted());
  });

  test("have the buckets of one that died within seconds after it is gone", async () => {
    for (const id of ["w1", "w2"]) await register(id);
    await enqueue(keys);
    const first = await claim("w1");
    await deployment.query(
      "update sluice.worker set seen_at = now() - interval '31 s' where worker_id = 'w2'",
    );
    expect(await claim("w1")).toEqual([]);
    moveClock(5_000);
    expect(keysOf([...first, ...(await claim("w1"))])).toEqual(keys.toSorted());
  });

  test("give buckets to one that joins elsewhere within seconds", async () => {
    for (const id of ["w1", "w2"]) await register(id);
    await claim("w1");
    await deployment.query(`select sluice.register_worker('w3', '{${queue}}', 'puller')`);
    await enqueue(keys);
    moveClock(5_000);
    const ids = ["w1", "w2", "w3"];
    const bucket = await bucketOf();
    const own = new Set(bucketsOf("w1", ids));
    const jobs = await claim("w1");
    expect(keysOf(jobs)).toEqual(keys.filter((key) => own.has(bucket(key) ?? -1)).toSorted());
  });
});

describe("a worker that takes from all buckets", () => {
  test("is one that never registered", async () => {
    for (const id of ["w1", "w2"]) await register(id);
    await enqueue(keys);
    expect(keysOf(await claim("stranger"))).toEqual(keys.toSorted());
  });

  test("is the only one that is registered", async () => {
    await register("w1");
    await enqueue(keys);
    expect(keysOf(await claim("w1"))).toEqual(keys.toSorted());
  });
});

test("a job's next one in its key goes to the worker of its bucket, when the first is completed", async () => {
  const ids = ["w1", "w2"];
  for (const id of ids) await register(id);
  for (let n = 0; n < 2; n++) await enqueue(keys);
  const [first] = await claim("w1", 1);
  const others = await claim("w2");
  expect(keysOf(others)).not.toContain(first?.partition_key);
  const completed = await deployment.call(`/v1/jobs/${first?.job_id}/complete`, {
    method: "POST",
    body: JSON.stringify({ lease: first?.lease }),
  });
  expect(completed.status).toBe(200);
  expect(await claim("w2")).toEqual([]);
  expect(keysOf(await claim("w1"))).toContain(first?.partition_key);
});
