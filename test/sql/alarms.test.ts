// Alarms and their deliveries in Postgres: each change and each delivery happens once, also when rounds run concurrently.
import type pg from "pg";
import { beforeEach, describe, expect, test } from "vitest";
import type { AlarmState } from "../../src/core/alarms/alarm.ts";
import type { DeliveryResult } from "../../src/core/sql/deliver.ts";
import {
  changeAlarms,
  claimDeliveries,
  listAlarmEvents,
  listDeliveries,
  pruneDeliveries,
  readAlarms,
  settleDeliveries,
  silenceAlarm,
} from "../../src/core/sql/index.ts";
import { compile } from "../../src/core/sql/statement.ts";
import { firing } from "../support/alarms.ts";
import { newestAudit } from "../support/audit.ts";
import { inSession, sqlState, untilWaiting } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { only } from "../support/verbs.ts";

const db = useTestDatabase();
beforeEach(() => emptyQueue(db.pool));

const ops = { name: "ops", urlHash: "1" };
const chat = { name: "chat", urlHash: "2" };

const readState = async () => await db.run(readAlarms());
/** Changes an alarm as a watcher does that has read this version of it. */
const change = (
  fields: Partial<AlarmState>,
  { version, targets = [ops] }: { version?: number; targets?: (typeof ops)[] } = {},
) =>
  db.run(
    changeAlarms(
      [{ state: { ...firing, ...fields }, version, notice: { of: fields.phase ?? "firing" } }],
      targets,
    ),
  );
const claim = (targets = [ops, chat]) => db.run(claimDeliveries({ targets, limit: 10, leaseSeconds: 60 }));
const resultOf = (
  { id, tries, target }: { id: string; tries: number; target: string },
  fields: Partial<DeliveryResult> = {},
): DeliveryResult => ({
  delivery: { id, tries },
  target,
  urlHash: target === "ops" ? ops.urlHash : chat.urlHash,
  outcome: "delivered",
  status: 200,
  error: null,
  retryInSeconds: null,
  ...fields,
});
const events = () => db.run(listAlarmEvents({ limit: 10 }));
const settle = (...results: DeliveryResult[]) => db.run(settleDeliveries(results));
const deliveries = async () =>
  (
    await db.pool.query(
      "select target, state, tries, status, error, notice->>'of' as of from sluice.delivery order by seq",
    )
  ).rows;
const age = (column: string, interval: string) =>
  db.pool.query(`update sluice.delivery set ${column} = ${column} - $1::interval`, [interval]);

describe("changing alarms", () => {
  test("a new alarm is stored as given, with a delivery for each target", async () => {
    expect(await change({}, { targets: [ops, chat] })).toEqual([
      { alarm: "dead_letters", queue: "default", jobType: "echo" },
    ]);
    expect((await readState()).alarms).toEqual([{ state: firing, version: 1 }]);
    expect(await deliveries()).toMatchObject([{ target: "ops" }, { target: "chat" }]);
  });

  test("when 20 watchers raise an alarm concurrently, one succeeds; the same holds when they resolve it", async () => {
    const raised = await Promise.all(Array.from({ length: 20 }, () => change({})));
    expect(raised.flat()).toHaveLength(1);
    const ended = await Promise.all(
      Array.from({ length: 20 }, () => change({ phase: "ok" }, { version: 1 })),
    );
    expect(ended.flat()).toHaveLength(1);
    expect(await deliveries()).toMatchObject([{ of: "firing" }, { of: "ok" }]);
    expect(await events()).toMatchObject([
      { event: "resolved", alarm: "dead_letters", queue: "default", jobType: "echo", severity: "warning" },
      { event: "firing", alarm: "dead_letters", queue: "default", jobType: "echo", since: firing.since },
    ]);
  });

  test("only the beginning and the end of firing are events, with or without a notice", async () => {
    const silently = (fields: Partial<AlarmState>, version?: number) =>
      db.run(changeAlarms([{ state: { ...firing, ...fields }, version, notice: null }], [ops]));
    await silently({ phase: "pending" });
    await silently({ phase: "firing" }, 1);
    await silently({ phase: "firing", value: 7 }, 2);
    await silently({ phase: "ok" }, 3);
    await silently({ phase: "pending" }, 4);
    await silently({ phase: "ok" }, 5);
    await silently({ phase: "firing" }, 2); // somebody else was faster
    expect((await events()).map(({ event }) => event)).toEqual(["resolved", "firing"]);
    const [newest] = await events();
    expect(await db.run(listAlarmEvents({ before: newest?.id, limit: 10 }))).toMatchObject([
      { event: "firing" },
    ]);
  });

  test("watchers that change the same alarms in opposite orders do not deadlock", async () => {
    const names = Array.from({ length: 30 }, (_, n) => `type-${n}`);
    const changes = (types: string[], version?: number) =>
      types.map((jobType) => ({ state: { ...firing, jobType }, version, notice: { of: jobType } }));
    await db.run(changeAlarms(changes(names), [ops]));
    const applied = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        db.run(changeAlarms(changes(n % 2 === 0 ? names : names.toReversed(), 1), [ops])),
      ),
    );
    expect(applied.flat()).toHaveLength(names.length);
    expect(await deliveries()).toHaveLength(2 * names.length);
  });

  test("a watcher waits for another's changes before it locks any alarm itself", async () => {
    // Without that lock each would hold the alarm that the other needs next.
    const raiseBy = (client: pg.PoolClient, jobType: string) => {
      const { text, values } = compile(
        changeAlarms([{ state: { ...firing, jobType }, version: undefined, notice: null }], [ops]),
      );
      return client.query(text, values);
    };
    const second = await inSession(db.pool, (first) =>
      inSession(db.pool, async (other) => {
        await first.query("begin");
        await raiseBy(first, "a");
        await other.query("begin");
        const waiting = raiseBy(other, "b").then(() => raiseBy(other, "a"));
        await untilWaiting(db.pool);
        expect(await sqlState(raiseBy(first, "b"))).toBe("none");
        await first.query("commit");
        return sqlState(waiting);
      }),
    );
    expect(second).toBe("none");
    expect((await readState()).alarms).toHaveLength(2);
  });

  test("an alarm for one queue and the same alarm for all queues are two alarms", async () => {
    await change({});
    await change({ queue: null, jobType: null });
    expect(await change({ queue: null, jobType: null })).toEqual([]);
    expect((await readState()).alarms).toHaveLength(2);
  });

  test("a change that is not applied makes no delivery, nor does a change without a notice", async () => {
    await change({});
    await change({ phase: "ok" }, { version: 7 });
    await db.run(changeAlarms([{ state: { ...firing, value: 2 }, version: 1, notice: null }], [ops]));
    expect((await readState()).alarms).toMatchObject([{ state: { phase: "firing", value: 2 }, version: 2 }]);
    expect(await deliveries()).toHaveLength(1);
  });
});

describe("deliveries", () => {
  test("are each claimed by one deliverer, and by no other while its claim lasts", async () => {
    await Promise.all(["a", "b", "c"].map((jobType) => change({ jobType })));
    const claimed = await Promise.all(Array.from({ length: 10 }, () => claim()));
    expect(claimed.flat()).toHaveLength(3);
    expect(await claim()).toEqual([]);
  });

  test("become claimable again under the same id when a deliverer dies, and its late result is ignored", async () => {
    await change({});
    const first = only(await claim());
    await age("next_try_at", "61 s");
    const second = only(await claim());
    expect(second).toMatchObject({ id: first.id, tries: 2 });
    expect(await settle(resultOf(first))).toBe(0);
    expect(await deliveries()).toMatchObject([{ state: "pending" }]);
    expect(await settle(resultOf(second))).toBe(1);
    expect(await deliveries()).toMatchObject([{ state: "delivered", tries: 2, status: 200 }]);
  });

  test("about one alarm reach a target in order: the resolution never comes first", async () => {
    await change({}, { targets: [ops, chat] });
    await change({ phase: "ok" }, { version: 1, targets: [ops, chat] });
    const [toOps, toChat] = (await claim()).toSorted((a, b) => (a.target < b.target ? 1 : -1));
    expect([toOps, toChat]).toMatchObject([
      { target: "ops", notice: { of: "firing" } },
      { target: "chat", notice: { of: "firing" } },
    ]);
    if (!toOps || !toChat) throw new Error("none was claimed");
    await settle(resultOf(toOps), resultOf(toChat, { outcome: "retry", retryInSeconds: 900 }));
    expect(await claim()).toMatchObject([{ target: "ops", notice: { of: "ok" } }]);
  });

  test("that failed wait for their retry time, and the target counts as failing since the first failure", async () => {
    await change({});
    await settle(
      resultOf(only(await claim()), { outcome: "retry", status: 500, error: "no", retryInSeconds: 90 }),
    );
    expect(await claim()).toEqual([]);
    const [before] = (await readState()).targets;
    expect(before).toMatchObject({
      name: "ops",
      failingSince: expect.any(Date),
      status: 500,
      error: "no",
      pending: 1,
    });
    await age("next_try_at", "89 s");
    expect(await claim()).toEqual([]);
    await age("next_try_at", "2 s");
    await settle(resultOf(only(await claim()), { outcome: "retry", status: 502, retryInSeconds: 0 }));
    expect((await readState()).targets).toMatchObject([{ failingSince: before?.failingSince, status: 502 }]);
    await settle(resultOf(only(await claim())));
    expect((await readState()).targets).toMatchObject([
      { failingSince: null, deliveredAt: expect.any(Date), pending: 0 },
    ]);
  });

  test("to a target that is gone wait, and no new ones are made, until it has another URL", async () => {
    await change({});
    await settle(resultOf(only(await claim()), { outcome: "gone", status: 410 }));
    expect((await readState()).targets).toMatchObject([{ goneSince: expect.any(Date), status: 410 }]);
    expect(await claim([ops])).toEqual([]);
    await change({ jobType: "another" });
    expect(await deliveries()).toHaveLength(1);
    const moved = { ...ops, urlHash: "new" };
    await change({ jobType: "third" }, { targets: [moved] });
    const claimed = await claim([moved]);
    expect(claimed).toHaveLength(2);
    await settle(...claimed.map((one) => resultOf(one, { urlHash: "new" })));
    expect((await readState()).targets).toMatchObject([
      { goneSince: null, failingSince: null, urlHash: "new" },
    ]);
  });

  test("of test notices switch a target on again when they succeed", async () => {
    const test = { delivery: null, target: "ops", urlHash: "1", error: null, retryInSeconds: null };
    await settle({ ...test, outcome: "gone", status: 410 });
    expect((await readState()).targets).toMatchObject([{ goneSince: expect.any(Date) }]);
    await settle({ ...test, outcome: "delivered", status: 200 });
    expect((await readState()).targets).toMatchObject([{ goneSince: null }]);
  });

  test("are given up after 3 days, and pruned 30 days later", async () => {
    const prune = () => db.run(pruneDeliveries({ giveUpDays: 3, keepDays: 30, limit: 10 }));
    await change({});
    expect(await prune()).toEqual({ givenUp: 0, pruned: 0 });
    await age("created_at", "3 days");
    expect(await prune()).toEqual({ givenUp: 1, pruned: 0 });
    expect(await deliveries()).toMatchObject([{ state: "given_up" }]);
    expect(await claim()).toEqual([]);
    await age("ended_at", "30 days");
    expect(await prune()).toEqual({ givenUp: 0, pruned: 1 });
  });
});

test("a silence lasts until its end, can be ended early, and is audited", async () => {
  const until = new Date(Date.now() + 3_600_000);
  await db.run(silenceAlarm("me", { alarm: "dead_letters", until, reason: "planned" }));
  const silence = { actor: "me", reason: "planned" };
  expect((await readState()).silences).toEqual([{ alarm: "dead_letters", until, ...silence }]);
  expect(await newestAudit(db)).toMatchObject({
    actor: "me",
    action: "silence",
    target: "alarm dead_letters",
    after: { reason: "planned" },
  });
  await db.run(silenceAlarm("me", { alarm: "dead_letters", until: new Date() }));
  expect((await readState()).silences).toEqual([]);
  await db.run(silenceAlarm("me", { alarm: "dead_letters", until: new Date(0) })); // there is none to end
  expect(await events()).toMatchObject([
    { event: "unsilenced", alarm: "dead_letters", actor: "me", until: null },
    { event: "silenced", alarm: "dead_letters", until, ...silence },
  ]);
});

test("the list of deliveries shows what became of each notice, newest first, in pages", async () => {
  const notice = {
    type: "alarm.firing",
    data: { alarm: "dead_letters", queue: "default", job_type: "echo" },
  };
  await db.run(changeAlarms([{ state: firing, version: undefined, notice }], [ops, chat]));
  const claimed = await claim([ops]);
  await settle(resultOf(only(claimed), { outcome: "retry", status: 503, error: "busy", retryInSeconds: 60 }));
  const [first, second, ...more] = await db.run(listDeliveries({ limit: 10 }));
  expect(more).toEqual([]);
  const about = { alarm: "dead_letters", queue: "default", jobType: "echo", noticeType: "alarm.firing" };
  const byTarget = [first, second].toSorted((a, b) => (a?.target ?? "").localeCompare(b?.target ?? ""));
  expect(byTarget).toMatchObject([
    { target: "chat", ...about, state: "pending", tries: 0, status: null },
    { target: "ops", ...about, state: "pending", tries: 1, status: 503, error: "busy", endedAt: null },
  ]);
  expect(byTarget[1]?.nextTryAt?.getTime()).toBeGreaterThan(Date.now() + 30_000);
  expect(await db.run(listDeliveries({ before: first?.seq, limit: 10 }))).toEqual([second]);
});

test("events are kept as long as deliveries", async () => {
  await db.run(silenceAlarm("me", { alarm: "dead_letters", until: new Date(Date.now() + 60_000) }));
  await db.pool.query("update sluice.alarm_event set at = at - interval '29 days'");
  const prune = () => db.run(pruneDeliveries({ giveUpDays: 7, keepDays: 30, limit: 10 }));
  await prune();
  expect(await events()).toHaveLength(1);
  await db.pool.query("update sluice.alarm_event set at = at - interval '2 days'");
  await prune();
  expect(await events()).toEqual([]);
});
