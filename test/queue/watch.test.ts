// The watch round on a real Postgres, with notices over real HTTP: who gets which notice, how often and in which format.
import { createHash } from "node:crypto";
import { beforeEach, describe, expect, inject, test } from "vitest";
import { noticeBody } from "../../src/contract/alarms.ts";
import type { AlarmRule } from "../../src/core/alarms/alarm.ts";
import { alarmRules } from "../../src/core/alarms/alarm-defaults.ts";
import { claim, silenceAlarm } from "../../src/core/sql/index.ts";
import { createSender } from "../../src/edge/webhook-sender.ts";
import type { KeyedTarget } from "../../src/queue/alarms/notify.ts";
import { enqueue } from "../../src/queue/enqueue.ts";
import type { Sender } from "../../src/queue/ports.ts";
import { reap } from "../../src/queue/reap.ts";
import { type WatchOptions, watch } from "../../src/queue/watch.ts";
import { type Inbox, openInbox } from "../support/inbox.ts";
import { newJob } from "../support/jobs.ts";
import { createTestPorts } from "../support/ports.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const ports = createTestPorts(db, []);
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const nextSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const sender = createSender({ allowPrivate: true });
/** The alarm fires when a queue has any job. */
const tooLong = { queue_length_high: [{ threshold: 0, forRounds: 1 }] };
let ops: Inbox;
let other: Inbox;

beforeEach(async () => {
  await emptyQueue(db.pool);
  ports.events.length = 0;
  ops = openInbox(inject("receiverUrl"), "ops");
  other = openInbox(inject("receiverUrl"), "other");
});

const targetAt = (inbox: Inbox, fields: Partial<KeyedTarget> = {}): KeyedTarget => ({
  name: "ops",
  url: inbox.url,
  urlHash: createHash("sha256").update(inbox.url).digest("hex"),
  format: "generic",
  secrets: [secret],
  ...fields,
});

const deployment = {
  name: "staging",
  publicUrl: "https://sluice.example/",
  runbookUrl: "https://git.example/sluice/docs/alarms.md",
};
const watchBy = (options: Partial<WatchOptions> = {}) =>
  watch(ports, {
    rules: alarmRules(tooLong),
    targets: [targetAt(ops)],
    sender,
    deployment,
    plan: "paid",
    ...options,
  });
const makeItTooLong = () => enqueue(ports, newJob());
const makeItEmpty = () =>
  db.pool.query(
    "with gone as (delete from sluice.ready returning lane) insert into sluice.ledger (lane, pending, cancelled) select lane, -1, 1 from gone",
  );
const bringForward = () =>
  db.pool.query("update sluice.delivery set next_try_at = now() where state = 'pending'");
const bodies = async (inbox = ops) =>
  (await inbox.requests()).map(({ body }) => noticeBody.parse(JSON.parse(body)));
const sentAlarms = async (inbox = ops) =>
  (await bodies(inbox)).map(({ type, data }) => `${type} ${data.alarm}`);
const canaries = async () =>
  (
    await db.pool.query(
      "select count(*)::int as jobs from sluice.jobs where type = 'sluice.canary' and queue = 'sluice'",
    )
  ).rows[0].jobs;

describe("a canary", () => {
  test("is enqueued each round, but at most three wait when drains have stopped", async () => {
    const counts: number[] = [];
    for (let round = 0; round < 5; round++) {
      await watchBy();
      counts.push(await canaries());
    }
    expect(counts).toEqual([1, 2, 3, 3, 3]);
    await db.run(claim({ queue: "sluice", types: [{ type: "sluice.canary" }], limit: 3, leaseSeconds: 60 }));
    await watchBy();
    expect(await canaries()).toBe(3);
  });

  test("is not enqueued when its alarm is switched off", async () => {
    await watchBy({ rules: alarmRules({ completion_rate_low: [{ isEnabled: false }] }) });
    expect(await canaries()).toBe(0);
  });
});

describe("a notice", () => {
  test("has the value, the threshold, the start and a link, and is signed with each secret", async () => {
    await makeItTooLong();
    await watchBy({ targets: [targetAt(ops, { secrets: [secret, nextSecret] })] });
    const [request, ...more] = await ops.requests(secret);
    const [again] = await ops.requests(nextSecret);
    expect(more).toEqual([]);
    expect(request?.headers["webhook-signature"]).toBe(
      `${request?.expectedSignature} ${again?.expectedSignature}`,
    );
    expect(JSON.parse(request?.body ?? "")).toEqual({
      type: "alarm.firing",
      timestamp: expect.any(String),
      data: {
        alarm: "queue_length_high",
        severity: "warning",
        queue: "default",
        job_type: null,
        value: 1,
        threshold: 0,
        since: expect.any(String),
        summary: "queue default: 1 job waiting",
        deployment: "staging",
        link: "https://sluice.example/v1/jobs?status=pending&queue=default",
        runbook: "https://git.example/sluice/docs/alarms.md#queue_length_high",
      },
    });
    expect(ports.events).toMatchObject([{ level: "error", event: "alarm firing" }]);
  });

  test("is sent once for a change and once for its resolution, also by concurrent watchers", async () => {
    await makeItTooLong();
    await Promise.all(Array.from({ length: 5 }, () => watchBy()));
    await watchBy();
    expect(await sentAlarms()).toEqual(["alarm.firing queue_length_high"]);
    await makeItEmpty();
    await Promise.all(Array.from({ length: 5 }, () => watchBy()));
    await watchBy();
    expect(await sentAlarms()).toEqual([
      "alarm.firing queue_length_high",
      "alarm.resolved queue_length_high",
    ]);
  });

  test("is followed by no write to the alarm while nothing changes", async () => {
    await makeItTooLong();
    await watchBy();
    const version = async () => (await db.pool.query("select version from sluice.alarm")).rows;
    const before = await version();
    await watchBy();
    expect(await version()).toEqual(before);
  });

  test("is written to the log when there is no target", async () => {
    await makeItTooLong();
    await watchBy({ targets: [] });
    expect(ports.events).toMatchObject([
      { level: "error", event: "alarm firing", fields: { alarm: "queue_length_high", queue: "default" } },
    ]);
  });

  test("is held back by a silence, and sent when the silence ends", async () => {
    const silence = (until: Date) => db.run(silenceAlarm("me", { alarm: "queue_length_high", until }));
    await silence(new Date(Date.now() + 60_000));
    await makeItTooLong();
    await watchBy();
    expect(await sentAlarms()).toEqual([]);
    await silence(new Date(0));
    await watchBy();
    expect(await sentAlarms()).toEqual(["alarm.firing queue_length_high"]);
  });

  test("in Slack's format has the numbers and the command, escaped", async () => {
    await makeItTooLong();
    await watchBy({ targets: [targetAt(ops, { format: "slack", secrets: [] })] });
    const [request] = await ops.requests();
    expect(request?.headers["webhook-signature"]).toBeUndefined();
    const { text, blocks } = JSON.parse(request?.body ?? "");
    expect(text).toBe("Firing: queue_length_high (warning) in staging: queue default: 1 job waiting");
    expect(blocks[0].text.text).toContain("value 1, threshold 0, since 20");
    expect(blocks[0].text.text).toContain("/v1/jobs?status=pending&amp;queue=default'`");
  });

  test("in PagerDuty's format triggers and resolves under one key", async () => {
    const targets = [targetAt(ops, { format: "pagerduty", secrets: ["R0UT1NG"] })];
    await makeItTooLong();
    await watchBy({ targets });
    await makeItEmpty();
    await watchBy({ targets });
    const events = (await ops.requests()).map(({ body }) => JSON.parse(body));
    const key = { routing_key: "R0UT1NG", dedup_key: "sluice/staging/queue_length_high/default/" };
    expect(events).toMatchObject([
      { ...key, event_action: "trigger", payload: { source: "staging", severity: "warning" } },
      { ...key, event_action: "resolve" },
    ]);
  });
});

describe("a target", () => {
  test("that was down gets its notices later, each once, in order and with the same id", async () => {
    await ops.answer(503);
    await makeItTooLong();
    await watchBy();
    await watchBy(); // its next try is not due yet
    expect(await ops.requests()).toHaveLength(1);
    await makeItEmpty();
    await bringForward();
    await watchBy();
    await ops.answer(200);
    await bringForward();
    await watchBy();
    await watchBy();
    const requests = await ops.requests(secret);
    expect(requests.map(({ body }) => JSON.parse(body).type)).toEqual([
      ...["alarm.firing", "alarm.firing", "alarm.firing", "alarm.resolved"],
    ]);
    expect(new Set(requests.map(({ headers }) => headers["webhook-id"])).size).toBe(2);
    for (const { headers, expectedSignature } of requests)
      expect(headers["webhook-signature"]).toBe(expectedSignature);
  });

  test("can set the time of the next try with Retry-After", async () => {
    await ops.answer(429, { retryAfter: 600 });
    await makeItTooLong();
    await watchBy();
    const { rows } = await db.pool.query(
      "select extract(epoch from next_try_at - now())::int as seconds, status, error from sluice.delivery",
    );
    expect(rows).toEqual([
      { seconds: expect.toSatisfy((s: number) => s > 590 && s <= 600), status: 429, error: "answered 429" },
    ]);
  });

  test("that does not answer does not delay other targets", async () => {
    const impatient: Sender = { send: (request) => sender.send({ ...request, timeoutMs: 200 }) };
    await ops.answer(0);
    await makeItTooLong();
    await watchBy({
      sender: impatient,
      targets: [targetAt(ops), targetAt(other, { name: "other" })],
    });
    expect(await sentAlarms(other)).toEqual(["alarm.firing queue_length_high"]);
  });

  test("that is gone (410) is switched off and reported to the others, and works again with another URL", async () => {
    const targets = [targetAt(ops), targetAt(other, { name: "other" })];
    await ops.answer(410);
    await makeItTooLong();
    await watchBy({ targets });
    await watchBy({ targets });
    expect(await ops.requests()).toHaveLength(1);
    expect(await sentAlarms(other)).toEqual([
      "alarm.firing queue_length_high",
      "alarm.firing target_failing",
    ]);
    expect((await bodies(other))[1]?.data.summary).toContain("ops answered 410 and is switched off");
    expect(ports.events).toContainEqual({
      level: "error",
      event: "notice not delivered",
      fields: { target: "ops", outcome: "gone", error: "answered 410" },
    });
    const moved = openInbox(inject("receiverUrl"), "moved");
    await watchBy({ targets: [targetAt(moved), targetAt(other, { name: "other" })] });
    expect(await sentAlarms(moved)).toContain("alarm.firing queue_length_high");
    expect(await sentAlarms(other)).toContain("alarm.resolved target_failing");
  });

  test("that keeps failing raises an alarm at the other targets", async () => {
    const targets = [targetAt(ops), targetAt(other, { name: "other" })];
    await ops.answer(500);
    await makeItTooLong();
    await watchBy({ targets });
    await db.pool.query(
      "update sluice.alarm_target set failing_since = now() - interval '16 min' where name = 'ops'",
    );
    await watchBy({ targets });
    expect(await sentAlarms(other)).toEqual([
      "alarm.firing queue_length_high",
      "alarm.firing target_failing",
    ]);
  });
});

describe("a watch round", () => {
  test("that dies before it delivers loses no notice: a later round delivers it once", async () => {
    const dying: Sender = { send: () => Promise.withResolvers<never>().promise };
    await makeItTooLong();
    void watchBy({ sender: dying }); // never ends
    const claimed = async () => (await db.pool.query("select tries from sluice.delivery")).rows;
    await expect.poll(claimed).toEqual([{ tries: 1 }]);
    await watchBy();
    expect(await sentAlarms()).toEqual([]); // the first round may still be alive
    await bringForward();
    await watchBy();
    await watchBy();
    expect(await sentAlarms()).toEqual(["alarm.firing queue_length_high"]);
  });

  test("that cannot enqueue its canary still raises and delivers, and then fails", async () => {
    await makeItTooLong();
    const broken = {
      ...ports,
      db: {
        run: ((statement) =>
          statement.name === "enqueue"
            ? Promise.reject(new Error("no"))
            : db.run(statement)) as typeof db.run,
      },
    };
    const rules: AlarmRule[] = alarmRules(tooLong);
    const options = { rules, targets: [targetAt(ops)], sender, deployment, plan: "free" } as const;
    await expect(watch(broken, options)).rejects.toThrow("1 of the watch round's steps failed");
    expect(await sentAlarms()).toEqual(["alarm.firing queue_length_high"]);
  });
});

test("expired leases that nobody reaps raise round_overdue", async () => {
  await enqueue(ports, newJob());
  await db.run(claim({ queue: "default", types: [{ type: "echo" }], limit: 1, leaseSeconds: -600 }));
  await watchBy({ rules: alarmRules({ round_overdue: [{ forRounds: 1 }] }) });
  expect((await bodies())[0]?.data).toMatchObject({
    alarm: "round_overdue",
    severity: "critical",
    summary: "leases that ran out have waited for a reap round for 600 s",
  });
});

test("an impossible state that the inspection finds raises an alarm, and its repair resolves it", async () => {
  const { id } = await enqueue(ports, newJob());
  const rules = alarmRules({ books_unbalanced: [{ forRounds: 1 }] });
  const round = async () => {
    await reap(ports);
    await watchBy({ rules });
  };
  await round();
  expect(await sentAlarms()).toEqual([]);
  await db.pool.query(
    "insert into sluice.scheduled (run_at, id, lane) select now() + interval '1 h', id, lane from sluice.ready where id = $1",
    [id],
  );
  await round();
  expect((await bodies())[0]).toMatchObject({
    type: "alarm.firing",
    data: {
      alarm: "books_unbalanced",
      value: 1,
      summary: `impossible: job ${id} is in ready and scheduled at once`,
    },
  });
  await db.pool.query("delete from sluice.scheduled");
  await round();
  expect(await sentAlarms()).toEqual(["alarm.firing books_unbalanced", "alarm.resolved books_unbalanced"]);
});

describe("queue_growing", () => {
  const delayed = () =>
    db.pool.query(
      "select count(*) from sluice.enqueue_many('echo', array_fill('{}'::jsonb, array[1100]), delay_seconds => 80000)",
    );
  const watchGrowth = () => watchBy({ rules: alarmRules({ queue_growing: [{ forRounds: 1 }] }) });

  test("does not fire for 1,100 scheduled jobs and one due job", async () => {
    await delayed();
    await enqueue(ports, newJob());
    await watchGrowth();
    expect(await sentAlarms()).toEqual([]);
  });

  test("fires for 1,100 delayed jobs once they are due and a claim has made them ready", async () => {
    await delayed();
    await db.pool.query("update sluice.scheduled set run_at = now()");
    await db.run(claim({ queue: "other", types: [{ type: "echo" }], limit: 1000, leaseSeconds: 60 }));
    await watchGrowth();
    const [notice] = await bodies();
    expect(notice?.data).toMatchObject({ alarm: "queue_growing", queue: "default", value: 1100 });
  });
});
