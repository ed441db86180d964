// Calls each function of the engine once on a database and schema. It checks that all of them work there, no details.
import { expect } from "vitest";
import type { JobFilter } from "../../src/core/job-search.ts";
import {
  advanceCursors,
  books,
  cancel,
  changeAlarms,
  claim,
  claimDeliveries,
  discard,
  dropOldestDay,
  enqueue,
  extend,
  findJob,
  foldLedger,
  listJobs,
  pause,
  prune,
  pruneDeliveries,
  readAlarms,
  reapExpired,
  reapLeases,
  replay,
  resume,
  settle,
  settleDeliveries,
  snapshot,
} from "../../src/core/sql/index.ts";
import type { Database } from "../../src/queue/ports.ts";
import { firing } from "./alarms.ts";
import { newJob } from "./jobs.ts";
import { times } from "./verbs.ts";

const jobs = 200;

export async function wholeLife(db: Database): Promise<void> {
  const next = { queue: "default", types: ["echo"], limit: jobs, leaseSeconds: 60 };
  const later = { tags: ["x"], expiresAt: new Date(Date.now() + 60_000) };
  const keyed = times(jobs, (n) => newJob({ ...later, idempotencyKey: `k${n}` }));
  const ids = (await db.run(enqueue(keyed))).map((job) => job.id);
  expect(ids).toEqual(ids.toSorted());
  const again = await db.run(enqueue([newJob({ ...later, idempotencyKey: "k0" })]));
  expect(again).toMatchObject([{ id: ids[0], deduplicated: true, status: "pending" }]);

  await db.run(pause("ann", { type: "echo" }));
  expect(await db.run(claim(next))).toMatchObject({ jobs: [] });
  await db.run(resume("ann", { type: "echo" }));
  const { jobs: claimed } = await db.run(claim(next));
  expect(claimed.map((job) => job.id)).toEqual(ids);
  expect(await db.run(extend(claimed.slice(1, 3), { seconds: 600 }))).toHaveLength(2);

  const settled = await db.run(
    settle(
      claimed.map((job, n) => ({
        job,
        outcome: n === 0 ? { kind: "bury", message: "no" } : { kind: "complete", output: { n } },
      })),
    ),
  );
  expect(settled.every((settlement) => settlement.applied)).toBe(true);
  expect(await db.run(findJob(ids[7] ?? ""))).toMatchObject({ status: "completed", output: { n: 7 } });
  const listed = async (filter: JobFilter) => (await db.run(listJobs(filter))).jobs;
  expect(await listed({ tag: "x", limit: jobs + 1 })).toHaveLength(jobs);
  expect(await listed({ status: "completed", types: ["echo"], limit: 10 })).toHaveLength(10);

  const [dead] = await listed({ status: "dead", limit: 10 });
  expect(dead?.id).toBe(ids[0]);
  expect(await db.run(replay("ann", { id: dead?.id ?? "" }))).toMatchObject({ applied: true });
  await db.run(claim({ ...next, leaseSeconds: -1 }));
  expect(await db.run(reapLeases({ limit: 10 }))).toEqual({ returned: 1, buried: 0 });
  expect(await db.run(cancel(ids[0] ?? ""))).toMatchObject({ applied: true });
  expect(await db.run(discard("ann", { id: ids[0] ?? "" }))).toMatchObject({ applied: false });
  await db.run(enqueue([newJob({ expiresAt: new Date(Date.now() - 1000) })]));
  expect(await db.run(reapExpired({ limit: 10 }))).toBe(1);

  for (let tick = 0; tick < 3; tick++) await db.run(advanceCursors());
  await db.run(foldLedger({ limit: 1000 }));
  expect(await db.run(dropOldestDay())).toBe(null);
  expect(await db.run(prune({ limit: 10 }))).toBe(0);
  const totals = { enqueued: jobs + 1, completed: jobs - 1, cancelled: 1, dead: 1, expired: 1, pending: 0 };
  expect(await db.run(books())).toMatchObject([totals]);
  expect(await db.run(snapshot())).toMatchObject({ groups: [totals], expiredLeaseSeconds: 0 });
  await deliverNotice(db);
}

async function deliverNotice(db: Database): Promise<void> {
  const targets = [{ name: "ops", urlHash: "h" }];
  expect(
    await db.run(changeAlarms([{ state: firing, version: undefined, notice: {} }], targets)),
  ).toHaveLength(1);
  const [delivery] = await db.run(claimDeliveries({ targets, limit: 1, leaseSeconds: 60 }));
  const result = { outcome: "delivered", status: 200, error: null, retryInSeconds: null } as const;
  const settled = { delivery: delivery ?? null, target: "ops", urlHash: "h", ...result };
  expect(await db.run(settleDeliveries([settled]))).toBe(1);
  expect(await db.run(pruneDeliveries({ giveUpDays: 3, keepDays: 30, limit: 10 }))).toEqual({
    givenUp: 0,
    pruned: 0,
  });
  expect(await db.run(readAlarms())).toMatchObject({
    alarms: [{ state: firing }],
    targets: [{ name: "ops" }],
  });
}
