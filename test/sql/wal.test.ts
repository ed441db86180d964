// What a job writes to the write-ahead log: commits wait for it, replicas receive it and providers bill it. The server
// counts the bytes of each call, so they are the same on every machine.
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { claimText, enqueueText, heldJobs, newJobs, settleText, settleValues } from "../support/churn.ts";
import { measure } from "../support/explain.ts";
import { useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const client = new pg.Client({ connectionString: db.url });
beforeAll(() => client.connect());
afterAll(() => client.end());

const batches = 50;
const batchSize = 100;

test("in a batch of 100, a job writes at most 600 bytes of log for its enqueue and 250 for claim and completion", async () => {
  const bytes = { enqueue: 0, finish: 0 };
  for (let batch = 0; batch < batches; batch++)
    bytes.enqueue += (await measure(client, enqueueText, [newJobs(batchSize)])).walBytes;
  for (let batch = 0; batch < batches; batch++) {
    bytes.finish += (await measure(client, claimText, [batchSize])).walBytes;
    const batch = await heldJobs(client);
    expect(batch.ids).toHaveLength(batchSize);
    bytes.finish += (await measure(client, settleText, settleValues(batch))).walBytes;
  }
  expect(bytes.enqueue / batches / batchSize).toBeLessThanOrEqual(600);
  expect(bytes.finish / batches / batchSize).toBeLessThanOrEqual(250);
});

test("the worker's name costs a settled batch its bytes, once", async () => {
  const claimAs = "select sluice.claim('default', array['mail'], $1::int, 600, $2)";
  const settledAs = async (worker: string | null) => {
    let bytes = Number.POSITIVE_INFINITY; // the fewest of some: a batch may begin a page
    for (let n = 0; n < 10; n++) {
      await client.query(enqueueText, [newJobs(batchSize)]);
      await client.query(claimAs, [batchSize, worker]);
      const { walBytes } = await measure(client, settleText, settleValues(await heldJobs(client)));
      bytes = Math.min(bytes, walBytes);
    }
    return bytes;
  };
  const name = "drain-3f2c9a1b-27";
  expect((await settledAs(name)) - (await settledAs(null))).toBeLessThanOrEqual(name.length + 8);
});

test("a durable step writes at most 300 bytes of log", async () => {
  const steps = 200;
  let bytes = 0;
  await client.query(enqueueText, [newJobs(batchSize)]);
  await client.query(claimText, [batchSize]);
  const { ids, keys } = await heldJobs(client);
  for (let n = 0; n < steps; n++) {
    const step = JSON.stringify([
      { name: `charge ${n}`, value: { id: `ch_${n}`, amount: 1200 }, took_ms: 35 },
    ]);
    const text = "select sluice.checkpoint($1, $2, $3, 60)";
    bytes += (await measure(client, text, [ids[n % batchSize], keys[n % batchSize], step])).walBytes;
  }
  expect(bytes / steps).toBeLessThanOrEqual(300);
});
