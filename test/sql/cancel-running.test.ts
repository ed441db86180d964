// Cancel of a running job: its worker is asked to stop. A completion that is faster wins, and nothing else runs it again.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Outcome } from "../../src/core/job.ts";
import {
  books,
  cancel,
  extend,
  extendOne,
  findCancelRequests,
  reapLeases,
} from "../../src/core/sql/index.ts";
import { differences } from "../support/balance.ts";
import { keyedJobsOf } from "../support/keyed-jobs.ts";
import { inSession, untilWaiting } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { wrongKeys } from "../support/turns.ts";
import { complete, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
const keyed = keyedJobsOf(db);
beforeEach(() => emptyQueue(db.pool));
afterEach(async () => {
  expect(await wrongKeys(db.pool)).toEqual([]);
  expect(await differences(queue)).toEqual([]);
});

const stop = (id: string) => db.run(cancel(id, { running: true }));

async function claimNew(fields = {}, leaseSeconds = 60) {
  await queue.enqueueOne(fields);
  return queue.claimOne({ leaseSeconds });
}

test("a running job is asked to stop, and extend tells its worker", async () => {
  const [job, other] = [await claimNew(), await claimNew()];
  expect(await stop(job.id)).toMatchObject({
    applied: false,
    cancelRequested: true,
    job: { status: "processing" },
  });
  expect(await stop(job.id)).toMatchObject({ cancelRequested: true });
  expect(await db.run(findCancelRequests([job.id, other.id]))).toEqual([job.id]);
  expect(await db.run(extendOne(job, { seconds: 60 }))).toMatchObject({
    applied: true,
    cancelRequested: true,
  });
  expect(await db.run(extend([other], { seconds: 60 }))).toMatchObject([{ cancelRequested: false }]);
});

test("a pending job is cancelled at once, and a job that has ended is left as it is", async () => {
  const id = await queue.enqueueOne();
  expect(await stop(id)).toMatchObject({
    applied: true,
    cancelRequested: false,
    job: { status: "cancelled" },
  });
  const job = await claimNew();
  await queue.settle([job], complete);
  expect(await stop(job.id)).toMatchObject({ applied: false, cancelRequested: false });
  expect(await queue.count("cancel_request")).toBe(0);
});

test("without `running` a running job is not asked", async () => {
  const job = await claimNew();
  expect(await db.run(cancel(job.id))).toMatchObject({ applied: false, cancelRequested: false });
  expect(await queue.count("cancel_request")).toBe(0);
});

test("a completion that is faster than the worker's next look wins", async () => {
  const job = await claimNew();
  await stop(job.id);
  expect(await queue.settle([job], complete)).toMatchObject([{ status: "completed" }]);
  expect(await queue.find(job.id)).toMatchObject({ status: "completed" });
});

describe("every other outcome ends the job as cancelled", () => {
  test.each<[string, Outcome]>([
    ["a retry", { kind: "retry", message: "busy", retryInSeconds: 5 }],
    ["a fatal error", { kind: "bury", message: "no use" }],
    ["a snooze", { kind: "snooze", retryInSeconds: 5 }],
    ["a release", { kind: "release" }],
    ["a suspend", { kind: "suspend", wait: { signal: { name: "go", key: "1" } } }],
  ])("%s", async (_, outcome) => {
    const [job, other] = [await claimNew(), await claimNew()];
    await stop(job.id);
    expect(await queue.settle([job], outcome)).toMatchObject([{ status: "cancelled", applied: true }]);
    expect(await queue.find(job.id)).toMatchObject({ status: "cancelled", deadReason: null });
    expect(await queue.count("cancel_request")).toBe(0);
    expect(await queue.settle([other], { kind: "release" })).toMatchObject([{ status: "pending" }]);
    expect(await db.run(books())).toMatchObject([{ cancelled: 1, dead: 0, leased: 0, pending: 1 }]);
  });
});

test("when the worker dies, the reaper ends the job as cancelled", async () => {
  await queue.enqueue(...times(3, () => ({})));
  const jobs = await queue.claim({ leaseSeconds: 60 });
  const [job] = jobs;
  await stop(job?.id ?? "");
  await queue.query("update sluice.lease set deadline = now() - interval '1 second'");
  expect(await db.run(reapLeases({ limit: 10 }))).toEqual({ returned: 2, buried: 0 });
  expect(await queue.find(job?.id ?? "")).toMatchObject({ status: "cancelled" });
  expect(await db.run(books())).toMatchObject([{ cancelled: 1, dead: 0, leased: 0, pending: 2 }]);
});

describe("a job with a key gives its turn on", () => {
  test("when it is released", async () => {
    await keyed.put("a1 a2");
    expect(await keyed.take()).toBe("a1");
    await stop(await keyed.idOf("a1"));
    await keyed.end("a1", { kind: "release" });
    expect(await keyed.drain()).toBe("a2");
  });

  test("when its error would have blocked the key", async () => {
    await keyed.put("a1 a2");
    expect(await keyed.take()).toBe("a1");
    await stop(await keyed.idOf("a1"));
    await keyed.end("a1", { kind: "bury", message: "no use" });
    expect(await keyed.drain()).toBe("a2");
  });
});

test("a job that waits for it dies, as for any end that is not a completion", async () => {
  const job = await claimNew();
  const [waiting] = await queue.query<{ id: string }>(
    "select sluice.enqueue('echo', '{}', after => jsonb_build_array($1::uuid)) as id",
    [job.id],
  );
  await queue.claim(); // adopts the blocker
  await stop(job.id);
  await queue.settle([job], { kind: "release" });
  await queue.claim();
  expect(
    await queue.query("select status, dead_reason from sluice.jobs where id = $1", [waiting?.id]),
  ).toEqual([{ status: "dead", dead_reason: "blocker" }]);
});

test("a settle that holds the lease comes first, and the cancel finds what it has left", async () => {
  for (const [outcome, answer] of [
    ["complete", { applied: false, cancelRequested: false, job: { status: "completed" } }],
    ["release", { applied: true, job: { status: "cancelled" } }],
  ] as const) {
    const job = await claimNew();
    const settleText = `select sluice.settle(array['${job.id}']::uuid[], array['${job.leaseKey}']::uuid[],
      '[{"outcome": "${outcome}"}]')`;
    await inSession(db.pool, async (session) => {
      await session.query("begin");
      await session.query(settleText);
      const asked = stop(job.id);
      await untilWaiting(db.pool);
      await session.query("commit");
      expect(await asked).toMatchObject(answer);
    });
  }
});

test("a settle that waits for an open cancel sees its request", async () => {
  const job = await claimNew();
  await inSession(db.pool, async (session) => {
    await session.query("begin");
    await session.query(`select sluice.cancel('${job.id}', null, true)`);
    const settled = queue.settle([job], { kind: "retry", message: "busy", retryInSeconds: 1 });
    await untilWaiting(db.pool);
    await session.query("commit");
    expect(await settled).toMatchObject([{ status: "cancelled" }]);
  });
});
