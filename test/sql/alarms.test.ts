// Alarms and their deliveries in Postgres: what holds when two watchers or two deliverers meet.
import type pg from "pg";
import { beforeEach, describe, expect, test } from "vitest";
import type { AlarmState } from "../../src/core/alarms/alarm.ts";
import type { DeliveryResult } from "../../src/core/sql/deliver.ts";
import {
  changeAlarms,
  claimDeliveries,
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

const known = async () => await db.run(readAlarms());
/** As one watcher does it who read that version. */
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
  test("a new one is kept as it is, with a delivery for each target", async () => {
    expect(await change({}, { targets: [ops, chat] })).toEqual([
      { alarm: "dead_letters", queue: "default", jobType: "echo" },
    ]);
    expect((await known()).alarms).toEqual([{ state: firing, version: 1 }]);
    expect(await deliveries()).toMatchObject([{ target: "ops" }, { target: "chat" }]);
  });

  test("of many watchers who saw nothing one raises it, and of many who saw it one ends it", async () => {
    const raised = await Promise.all(Array.from({ length: 20 }, () => change({})));
    expect(raised.flat()).toHaveLength(1);
    const ended = await Promise.all(
      Array.from({ length: 20 }, () => change({ phase: "ok" }, { version: 1 })),
    );
    expect(ended.flat()).toHaveLength(1);
    expect(await deliveries()).toMatchObject([{ of: "firing" }, { of: "ok" }]);
  });

  test("watchers that change the same alarms in another order do not lock each other out", async () => {
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

  test("a watcher waits for one that is changing alarms before it holds any itself", async () => {
    // Without the lock each would hold the alarm that the other wants next.
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
    expect((await known()).alarms).toHaveLength(2);
  });

  test("an alarm of a queue is another than that of all queues, and there is one of each", async () => {
    await change({});
    await change({ queue: null, jobType: null });
    expect(await change({ queue: null, jobType: null })).toEqual([]);
    expect((await known()).alarms).toHaveLength(2);
  });

  test("what did not apply tells nobody, and a change without a notice neither", async () => {
    await change({});
    await change({ phase: "ok" }, { version: 7 });
    await db.run(changeAlarms([{ state: { ...firing, value: 2 }, version: 1, notice: null }], [ops]));
    expect((await known()).alarms).toMatchObject([{ state: { phase: "firing", value: 2 }, version: 2 }]);
    expect(await deliveries()).toHaveLength(1);
  });
});

describe("deliveries", () => {
  test("are claimed by one deliverer each, and by nobody else while it lives", async () => {
    await Promise.all(["a", "b", "c"].map((jobType) => change({ jobType })));
    const claimed = await Promise.all(Array.from({ length: 10 }, () => claim()));
    expect(claimed.flat()).toHaveLength(3);
    expect(await claim()).toEqual([]);
  });

  test("come back with their id when the deliverer died, and its late word counts for nothing", async () => {
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

  test("about one thing reach a target in order: a resolution never overtakes", async () => {
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

  test("that failed wait as long as they were told, and their target is failing since the first failure", async () => {
    await change({});
    await settle(
      resultOf(only(await claim()), { outcome: "retry", status: 500, error: "no", retryInSeconds: 90 }),
    );
    expect(await claim()).toEqual([]);
    const [before] = (await known()).targets;
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
    expect((await known()).targets).toMatchObject([{ failingSince: before?.failingSince, status: 502 }]);
    await settle(resultOf(only(await claim())));
    expect((await known()).targets).toMatchObject([
      { failingSince: null, deliveredAt: expect.any(Date), pending: 0 },
    ]);
  });

  test("to a target that is gone wait, and no new ones are made for it, until it has another URL", async () => {
    await change({});
    await settle(resultOf(only(await claim()), { outcome: "gone", status: 410 }));
    expect((await known()).targets).toMatchObject([{ goneSince: expect.any(Date), status: 410 }]);
    expect(await claim([ops])).toEqual([]);
    await change({ jobType: "another" });
    expect(await deliveries()).toHaveLength(1);
    const moved = { ...ops, urlHash: "new" };
    await change({ jobType: "third" }, { targets: [moved] });
    const claimed = await claim([moved]);
    expect(claimed).toHaveLength(2);
    await settle(...claimed.map((one) => resultOf(one, { urlHash: "new" })));
    expect((await known()).targets).toMatchObject([{ goneSince: null, failingSince: null, urlHash: "new" }]);
  });

  test("a test notice that gets through switches its target on again", async () => {
    const test = { delivery: null, target: "ops", urlHash: "1", error: null, retryInSeconds: null };
    await settle({ ...test, outcome: "gone", status: 410 });
    expect((await known()).targets).toMatchObject([{ goneSince: expect.any(Date) }]);
    await settle({ ...test, outcome: "delivered", status: 200 });
    expect((await known()).targets).toMatchObject([{ goneSince: null }]);
  });

  test("are given up after some days, and forgotten after more", async () => {
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

test("a silence lasts until its time, can be ended, and is audited", async () => {
  const until = new Date(Date.now() + 3_600_000);
  await db.run(silenceAlarm("me", { alarm: "dead_letters", until }));
  expect((await known()).silences).toEqual([{ alarm: "dead_letters", until }]);
  expect(await newestAudit(db)).toMatchObject({
    actor: "me",
    action: "silence",
    target: "alarm dead_letters",
  });
  await db.run(silenceAlarm("me", { alarm: "dead_letters", until: new Date() }));
  expect((await known()).silences).toEqual([]);
});
