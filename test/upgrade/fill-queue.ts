// Makes jobs in every state, and a row in every other table that a deployment writes. test/support/traffic.ts uses other types
// and queues, so it does not touch these jobs.
import type { NewJob } from "../../src/core/job.ts";
import {
  addKey,
  cancel,
  changeAlarms,
  discard,
  extend,
  foldLedger,
  openBreaker,
  pause,
  reapExpired,
  reapLeases,
  recordEnqueueErrors,
  recordRound,
  silenceAlarm,
} from "../../src/core/sql/index.ts";
import { firing } from "../support/alarms.ts";
import type { TestDatabase } from "../support/test-database.ts";
import { complete, only, times, type Verbs, verbsOf } from "../support/verbs.ts";

const queue = "upgrade";
const maxBuriedTries = 10;

export async function fillQueue(db: TestDatabase): Promise<void> {
  const verbs = verbsOf(db);
  await addPending(verbs);
  await addEnded(db, verbs);
  await addDead(db, verbs);
  await addProcessing(db, verbs);
  await addAdministration(db);
  // Some entries of the books are folded and some are not.
  await db.run(foldLedger({ limit: 10 }));
  await verbs.enqueueOne({ queue, type: "after_the_fold" });
  // The dump is restored long after the 30 days that a job has by default.
  await verbs.query("update sluice.job set expires_at = '2100-01-01' where expires_at is null");
}

async function addPending(verbs: Verbs): Promise<void> {
  const options: Partial<NewJob> = {
    queue,
    type: "pending",
    priority: 3,
    maxAttempts: 7,
    partitionKey: "p",
    traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    tags: ["red", "blue"],
    payload: { nested: { text: 'it\'s \\ "quoted"' } },
  };
  await verbs.enqueue(options, { ...options, idempotencyKey: "upgrade" }, { queue, type: "pending" });
  const inAnHour = new Date(Date.now() + 3_600_000);
  const inTwoHours = new Date(Date.now() + 7_200_000);
  await verbs.enqueueOne({ queue, type: "scheduled", scheduledAt: inAnHour, expiresAt: inTwoHours });
}

async function addEnded(db: TestDatabase, verbs: Verbs): Promise<void> {
  await verbs.enqueue(...times(5, () => ({ queue, type: "completed" })));
  await verbs.settle(await verbs.claim({ queue, types: ["completed"], limit: 4 }), complete);
  const withOutput = await verbs.claim({ queue, types: ["completed"] });
  await verbs.settle(withOutput, { kind: "complete", output: { rows: [1, 2] } });
  await db.run(cancel(await verbs.enqueueOne({ queue, type: "cancelled" })));
  const dead = await verbs.buryOne({ queue, type: "discarded" });
  await db.run(discard("ann", { id: dead, reason: "no use" }));
}

async function addDead(db: TestDatabase, verbs: Verbs): Promise<void> {
  await verbs.buryOne({ queue, type: "fatal" });
  const retry = { kind: "retry", message: "no", retryInSeconds: 60 } as const;
  for (const [type, maxAttempts] of [
    ["exhausted", 1],
    ["retried", 5],
  ] as const) {
    await verbs.enqueueOne({ queue, type, maxAttempts });
    await verbs.settle(await verbs.claim({ queue, types: [type] }), retry);
  }
  await verbs.enqueueOne({ queue, type: "expired", expiresAt: new Date(Date.now() - 1000) });
  await db.run(reapExpired({ limit: 10 }));
  // A job that is abandoned once is isolated. One that is abandoned at every attempt is dead.
  await verbs.enqueue({ queue, type: "isolated" }, { queue, type: "isolated" });
  await verbs.enqueueOne({ queue, type: "abandoned" });
  for (const types of [["isolated"], ...times(maxBuriedTries, () => ["abandoned"])]) {
    await verbs.claim({ queue, types, leaseSeconds: -1 });
    await db.run(reapLeases({ limit: 10, backoffs: {} }));
    await verbs.query(
      `update sluice.scheduled set run_at = now()
       where lane in (select lane from sluice.lane where type = 'abandoned')`,
    );
  }
}

async function addProcessing(db: TestDatabase, verbs: Verbs): Promise<void> {
  await verbs.enqueue(...times(6, () => ({ queue, type: "processing" })));
  const held = await verbs.claim({ queue, types: ["processing"], worker: "w" });
  await db.run(extend(held.slice(0, 2), { seconds: 600 }));
  await verbs.enqueue({ queue, type: "limited" }, { queue, type: "limited" });
  const rate = { limit: 10, perSeconds: 60 };
  const types = [{ type: "limited", leaseSeconds: 300, limits: { concurrency: 1, rate } }];
  only(await verbs.claim({ queue, types }));
}

async function addAdministration(db: TestDatabase): Promise<void> {
  await db.run(pause("ann", { type: "paused" }));
  await db.run(pause("ann", { queue: "paused" }));
  await db.run(openBreaker("broken"));
  const key = { name: "shop", role: "producer", jobTypes: ["pending"], rateLimitPerSecond: 5 } as const;
  await db.run(addKey("ann", { ...key, keyHash: "ab".repeat(32) }));
  await db.run(
    changeAlarms(
      [{ state: firing, version: undefined, notice: { type: "alarm.firing" } }],
      [{ name: "ops", urlHash: "h" }],
    ),
  );
  await db.run(silenceAlarm("ann", { alarm: "dead_letters", until: new Date(Date.now() + 3_600_000) }));
  await db.run(recordRound({ kind: "drain", queue, ms: 3, report: { claimed: 1, end: "empty" } }));
  await db.run(recordEnqueueErrors(2));
}
