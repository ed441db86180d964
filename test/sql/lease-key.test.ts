// Lease keys: nobody can guess one, and the generation rises even if the sequence or the clock is set back.
import { beforeEach, expect, test } from "vitest";
import { generationOf } from "../../src/core/job.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, only, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(async () => {
  await emptyQueue(db.pool);
  await setSequence("1");
});

const release = { kind: "release" } as const;
const generation = (job: { leaseKey: string }) => BigInt(generationOf(job.leaseKey));

/** The generation of one job's next claim. */
async function claimAgain(): Promise<bigint> {
  const job = await queue.claimOne();
  await queue.settle([job], release);
  return generation(job);
}

const setSequence = (to: string) => queue.query(`select setval('sluice.lease_generation', ${to})`);
const micros = "(extract(epoch from clock_timestamp()) * 1000000)::bigint";

test("a key with the right generation and other random bits settles nothing", async () => {
  await queue.enqueueOne();
  const job = await queue.claimOne();
  const guess = { ...job, leaseKey: `${job.leaseKey.slice(0, 18)}-8000-000000000000` };
  expect(generation(guess)).toBe(generation(job));
  expect(await queue.settle([guess], complete)).toMatchObject([{ applied: false }]);
  expect(await queue.settle([job], complete)).toMatchObject([{ applied: true }]);
});

test("the random bits of two claims differ", async () => {
  await queue.enqueue(...times(2, () => ({})));
  const [first, second] = [await queue.claimOne(), await queue.claimOne()];
  expect(first.leaseKey.slice(19)).not.toBe(second.leaseKey.slice(19));
});

test("the generation rises after a failover that lost the last claims has set the sequence back", async () => {
  await queue.enqueueOne();
  await setSequence(`${micros} - 1500000`); // as in the last log that arrived
  const lost = await claimAgain();
  await setSequence("1");
  expect(await claimAgain()).toBeGreaterThan(lost);
});

test("the generation rises while the clock is behind the sequence", async () => {
  await queue.enqueueOne();
  await setSequence(`${micros} + 3600000000`);
  const before = await claimAgain();
  expect(await claimAgain()).toBe(before + 1n);
});

test("concurrent claims after a failover have different generations, all higher than before", async () => {
  await queue.enqueue(...times(32, () => ({})));
  const before = generation(await queue.claimOne());
  await setSequence("1");
  const jobs = await Promise.all(Array.from({ length: 31 }, () => queue.claimOne()));
  const generations = jobs.map(generation);
  expect(new Set(generations).size).toBe(31);
  expect(generations.every((each) => each > before)).toBe(true);
});

test("a claim in an open transaction makes no other claim wait for its generation", async () => {
  await queue.enqueue(...times(2, () => ({})));
  await setSequence("1");
  const client = await db.pool.connect();
  try {
    await client.query("begin");
    await client.query("select sluice.claim('default', '{echo}', 1, 60)");
    await setSequence("1");
    expect(only(await queue.claim({ limit: 1 })).attempt).toBe(1);
  } finally {
    await client.query("rollback");
    client.release();
  }
});
