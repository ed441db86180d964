// Alarms and a database that sleeps: none of them fires because nothing happened while it slept, and each still fires for its own
// reason, also right after a sleep.
import { beforeEach, describe, expect, test } from "vitest";
import { type AlarmName, alarmNames } from "../../src/core/alarms/alarm.ts";
import { type AlarmOverrides, alarmRules } from "../../src/core/alarms/alarm-defaults.ts";
import { recordRound } from "../../src/core/sql/index.ts";
import { canaryJob } from "../../src/jobs/canary.ts";
import { drainQueue } from "../../src/queue/drain/drain.ts";
import { runAndRecord } from "../../src/queue/rounds.ts";
import { watch } from "../../src/queue/watch.ts";
import { makeOlder } from "../support/old-jobs.ts";
import { createTestPorts, roomyBudget } from "../support/ports.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
const ports = createTestPorts(db, [canaryJob]);
beforeEach(() => emptyQueue(db.pool));

const minute = 60_000;
const deployment = { name: "test", publicUrl: "", runbookUrl: "https://git.example/alarms.md" };

/** A watch round, as the cron starts it. */
const round = (sleptMsAgo: number | null, overrides: AlarmOverrides = {}) =>
  runAndRecord(ports, { kind: "watch" }, () =>
    watch(ports, {
      ...{
        rules: alarmRules(overrides),
        targets: [],
        sender: ports.sender,
        deployment,
        plan: "paid",
        sleptMsAgo,
      },
    }),
  );
const firing = async () =>
  (
    await queue.query<{ alarm: AlarmName }>("select distinct alarm from sluice.alarm where phase = 'firing'")
  ).map(({ alarm }) => alarm);

/** What has happened was so many hours earlier. */
async function sleepFor(hours: number): Promise<void> {
  const earlier = `make_interval(hours => ${hours})`;
  await queue.query(
    `update sluice.round set started_at = started_at - ${earlier}, ended_at = ended_at - ${earlier}`,
  );
  await queue.query(`update sluice.ledger set at = at - ${earlier}`);
  await queue.query(`update sluice.tally set minute = minute - ${earlier} where minute > '-infinity'`);
}

/** A job of yesterday comes back by a retry right after the sleep. */
async function workAndSleep(): Promise<void> {
  await round(null);
  for (const kind of ["drain", "reap"] as const) await db.run(recordRound({ kind, ms: 1, report: {} }));
  await drainQueue(ports, { queue: "sluice", budget: roomyBudget, worker: "w" });
  await makeOlder(queue, await queue.enqueueOne(), 1);
  const job = await queue.claimOne();
  await sleepFor(4);
  await queue.settle([job], { kind: "retry", message: "no", retryInSeconds: 0 });
  await queue.claim({ queue: "other" }); // makes the retry ready
  await queue.query("delete from sluice.failed_attempt");
}

describe("after a sleep of four hours", () => {
  test.each(alarmNames)("%s does not fire", async (alarm) => {
    await workAndSleep();
    for (let n = 0; n < 4; n++) await round(minute + n * 2 * minute);
    expect(await firing()).not.toContain(alarm);
  });

  test("silence that was not on purpose fires", async () => {
    await workAndSleep();
    for (let n = 0; n < 4; n++) await round(null);
    expect((await firing()).toSorted()).toEqual([
      "completion_rate_low",
      "oldest_pending_high",
      "round_overdue",
    ]);
  });

  test("so does silence that goes on for long after the sleep", async () => {
    await workAndSleep();
    for (let n = 0; n < 4; n++) await round(20 * minute);
    expect((await firing()).toSorted()).toEqual([
      "completion_rate_low",
      "oldest_pending_high",
      "round_overdue",
    ]);
  });
});

/** One reason for each alarm that has nothing to do with silence. */
const reasons: Partial<Record<AlarmName, () => Promise<unknown>>> = {
  queue_length_high: () => queue.enqueue({}, {}),
  queue_growing: () => queue.enqueue({}, {}),
  job_expired: async () => {
    await queue.enqueue({ expiresAt: new Date(Date.now() - 1000) });
    await queue.query("select sluice.reap_expired(10)");
  },
  dead_letters: async () => {
    await queue.enqueue({});
    await queue.settle([await queue.claimOne()], { kind: "bury", message: "no" });
  },
  breaker_open: () => queue.query("select sluice.open_breaker('echo')"),
  partition_blocked: async () => {
    await queue.enqueue({ partitionKey: "k" });
    await queue.settle([await queue.claimOne()], { kind: "bury", message: "no" });
    await queue.query("update sluice.closed set closed_at = now() - interval '1 hour'");
  },
  flow_stalled: async () => {
    await queue.query(`select sluice.enqueue_flow('[{"ref": "a", "type": "echo"}]')`);
    await queue.query("update sluice.flow set changed_at = now() - interval '1 hour'");
  },
  enqueue_errors: () => queue.query("insert into sluice.enqueue_error (at, errors) values (now(), 5)"),
  books_unbalanced: () =>
    queue.query(
      "insert into sluice.impossible_state (kind, id, what) values ('job', gen_random_uuid(), 'is twice')",
    ),
  jobs_unreachable: () =>
    db.run(recordRound({ kind: "reap", ms: 1, report: { steps: { unreachable: { ms: 1, did: [3] } } } })),
};

describe("right after a sleep, a real reason still fires", () => {
  test.each(Object.keys(reasons) as AlarmName[])("%s", async (alarm) => {
    await workAndSleep();
    await queue.query("delete from sluice.ready");
    expect(await firing()).toEqual([]);
    await reasons[alarm]?.();
    await round(minute, { [alarm]: [{ threshold: 0, forRounds: 1 }] });
    expect(await firing()).toContain(alarm);
  });
});
