// The alarm rules: which alarms a snapshot raises by default and with rules from the settings, and their summaries.
import { describe, expect, test } from "vitest";
import type { ActiveHours } from "../../src/core/alarms/active-hours.ts";
import type { AlarmName, TargetHealth } from "../../src/core/alarms/alarm.ts";
import { type AlarmOverrides, alarmRules } from "../../src/core/alarms/alarm-defaults.ts";
import { observe } from "../../src/core/alarms/alarm-rules.ts";
import type { Snapshot } from "../../src/core/snapshot.ts";
import { at, groupOf, minuteOf, minutesAgo, snapshotOf } from "../support/snapshots.ts";

const canary = { queue: "sluice", type: "sluice.canary" };
const beat = [minuteOf(1, { ...canary, completed: 1 }), minuteOf(3, { ...canary, completed: 1 })];

const impossibleStates: Snapshot["impossibleStates"] = {
  count: 2,
  example: { kind: "job", id: "7", what: "is in ready and lease at once" },
};

interface Looked {
  seen?: Partial<Snapshot>;
  overrides?: AlarmOverrides;
  targets?: TargetHealth[];
}

function look({ seen = {}, overrides = {}, targets = [] }: Looked) {
  return observe({ snapshot: snapshotOf({ minutes: beat, ...seen }), targets }, alarmRules(overrides));
}

/** The alarms that the snapshot raises, as "alarm queue/type". */
function bad(looked: Looked): string[] {
  return look(looked)
    .filter(({ isBad }) => isBad)
    .map(({ alarm, queue, jobType }) => `${alarm} ${queue ?? "*"}/${jobType ?? "*"}`);
}

const of = (alarm: AlarmName, looked: Looked) => look(looked).find((seen) => seen.alarm === alarm);

function reapRound(steps: Snapshot["recentRounds"][number]["steps"]): Snapshot["recentRounds"][number] {
  const nothing = { claimed: 0, completed: 0, failed: 0, released: 0, lost: 0 };
  return {
    ...{ kind: "reap", queue: null, startedAt: at, endedAt: at, reason: "done", message: null, steps },
    ...nothing,
  };
}

describe("by default", () => {
  test("a deployment that works raises no alarm, even when it is idle", () => {
    const groups = [groupOf({ completed: 1000 }), groupOf({ ...canary, completed: 9 })];
    expect(bad({ seen: { groups } })).toEqual([]);
    expect(bad({ seen: { groups: [groupOf({ enqueued: 3, blocked: 2, completed: 1 })] } })).toEqual([]);
    expect(bad({})).toEqual([]);
  });

  test.each<[string, Looked, string[]]>([
    ["the canary is not completed", { seen: { minutes: [] } }, ["completion_rate_low sluice/sluice.canary"]],
    [
      "a queue is too long",
      { seen: { groups: [groupOf({ pending: 10_001 })] } },
      ["queue_length_high default/*"],
    ],
    [
      "a queue grows",
      {
        seen: {
          groups: [groupOf({ pending: 1200, oldestDueSeconds: 60 })],
          minutes: [...beat, minuteOf(4, { enqueued: 1500, completed: 300, ready: 1200 })],
        },
      },
      ["queue_growing default/*"],
    ],
    [
      "a job waits for too long",
      { seen: { groups: [groupOf({ pending: 1, oldestDueSeconds: 901 })] } },
      ["oldest_pending_high default/*"],
    ],
    [
      "a single job expired",
      {
        seen: {
          groups: [groupOf({ dead: 1, expired: 1 })],
          minutes: [...beat, minuteOf(2, { expired: 1 })],
        },
      },
      ["job_expired default/echo"],
    ],
    [
      "there is a dead letter of a type",
      { seen: { groups: [groupOf({ type: "a" }), groupOf({ type: "b", dead: 1 })] } },
      ["dead_letters default/b"],
    ],
    [
      "an expired job is still dead",
      { seen: { groups: [groupOf({ dead: 1, expired: 1 })] } },
      ["dead_letters default/echo"],
    ],
    [
      "a breaker is open",
      { seen: { openBreakers: [{ type: "mail", openedAt: at }] } },
      ["breaker_open */mail"],
    ],
    [
      "a partition key is blocked for too long",
      {
        seen: {
          blockedKeys: [
            { queue: "default", keys: 1, since: minutesAgo(14), jobId: "7" },
            { queue: "orders", keys: 2, since: minutesAgo(16), jobId: "8" },
          ],
        },
      },
      ["partition_blocked orders/*"],
    ],
    [
      "a flow makes no progress for a day",
      { seen: { idleFlows: [{ flowId: "7", since: minutesAgo(24 * 60 + 1) }] } },
      ["flow_stalled */*"],
    ],
    [
      "a transaction is open for too long",
      { seen: { oldestTransaction: { seconds: 1801, source: "slot" } } },
      ["oldest_transaction */*"],
    ],
    [
      "drain rounds do not run",
      { seen: { rounds: [{ kind: "reap", endedAt: at, hasFailed: false }] } },
      ["round_overdue */*"],
    ],
    [
      "a reap round fails",
      {
        seen: {
          rounds: [
            { kind: "drain", endedAt: at, hasFailed: false },
            { kind: "reap", endedAt: at, hasFailed: true },
          ],
        },
      },
      ["round_overdue */*"],
    ],
    ["expired leases are not reaped", { seen: { expiredLeaseSeconds: 361 } }, ["round_overdue */*"]],
    [
      "enqueues fail",
      { seen: { enqueueErrors: [{ minute: minutesAgo(3), errors: 11 }] } },
      ["enqueue_errors */*"],
    ],
    [
      "the books do not balance",
      { seen: { groups: [groupOf({ enqueued: 5, pending: 1, completed: 3 })] } },
      ["books_unbalanced */*"],
    ],
    ["a job is in an impossible state", { seen: { impossibleStates } }, ["books_unbalanced */*"]],
    [
      "jobs were unreachable",
      { seen: { recentRounds: [reapRound({ unreachable: { ms: 1, did: [2] } }), reapRound(null)] } },
      ["jobs_unreachable */*"],
    ],
    [
      "jobs waited for nothing",
      { seen: { recentRounds: [reapRound({ stuck: { ms: 1, did: [1] } }), reapRound(null)] } },
      ["jobs_unreachable */*"],
    ],
    [
      "an alarm's target is gone",
      { targets: [{ name: "ops", goneSince: at, failingSince: null }] },
      ["target_failing */*"],
    ],
    [
      "an alarm's target keeps failing",
      { targets: [{ name: "ops", goneSince: null, failingSince: minutesAgo(16) }] },
      ["target_failing */*"],
    ],
  ])("%s: exactly this alarm is raised", (_, looked, alarms) => {
    expect(bad(looked)).toEqual(alarms);
  });

  test("scheduled jobs do not count as growth, nor does a burst that was drained", () => {
    const delayed = [minuteOf(4, { enqueued: 5000, ready: 1 })];
    const group = groupOf({ pending: 5000, scheduled: 4999, oldestDueSeconds: 1 });
    expect(bad({ seen: { groups: [group], minutes: [...beat, ...delayed] } })).toEqual([]);
    const drained = [minuteOf(4, { enqueued: 5000, ready: 5000 }), minuteOf(2, { ready: -4990 })];
    expect(bad({ seen: { groups: [groupOf()], minutes: [...beat, ...drained] } })).toEqual([]);
  });

  test("only completions of the canary are watched; other types in its queue are watched as usual", () => {
    const groups = [groupOf({ ...canary, pending: 20_000, dead: 3, oldestDueSeconds: 9999 })];
    expect(bad({ seen: { groups } })).toEqual([]);
    const own = groupOf({ queue: canary.queue, type: "mail", dead: 1 });
    expect(bad({ seen: { groups: [...groups, own] } })).toEqual(["dead_letters sluice/mail"]);
  });

  test("the threshold for the waiting time is lower for higher priorities", () => {
    const waiting = (priority: number, oldestDueSeconds: number) =>
      bad({ seen: { groups: [groupOf({ pending: 1, priority, oldestDueSeconds })] } }).length;
    expect([waiting(9, 301), waiting(5, 301), waiting(5, 901), waiting(0, 901), waiting(0, 3601)]).toEqual([
      1, 0, 1, 0, 1,
    ]);
  });

  test("a new deployment raises nothing until a window has passed", () => {
    const seen = { minutes: [], rounds: [] };
    expect(bad({ seen: { ...seen, runningSince: minutesAgo(2) } })).toEqual([]);
    expect(bad({ seen: { ...seen, runningSince: null } })).toEqual([]);
    expect(bad({ seen: { ...seen, runningSince: minutesAgo(6) } })).toEqual([
      "completion_rate_low sluice/sluice.canary",
      "round_overdue */*",
    ]);
  });
});

describe("a rule from the settings", () => {
  const lowWatermark = { queue: "default", threshold: 1, windowMinutes: 1, forRounds: 1 };

  test("for the completion rate of a queue adds to the canary's rule, and can have a window of one minute", () => {
    const overrides = { completion_rate_low: [lowWatermark] };
    expect(bad({ overrides })).toEqual(["completion_rate_low default/*"]);
    const completed = (ago: number) =>
      bad({ overrides, seen: { minutes: [...beat, minuteOf(ago, { completed: 1 })] } });
    expect([completed(0), completed(1), completed(2)]).toEqual([[], [], ["completion_rate_low default/*"]]);
  });

  test("resolves after as many good rounds as it takes to fire, unless it sets another number", () => {
    const ruleOf = (rule: object) =>
      alarmRules({ queue_length_high: [rule] }).find((one) => one.alarm === "queue_length_high");
    expect(ruleOf({ forRounds: 4 })).toMatchObject({ forRounds: 4, ofRounds: 4, clearRounds: 4 });
    expect(ruleOf({ forRounds: 2, ofRounds: 5, clearRounds: 1 })).toMatchObject({
      ofRounds: 5,
      clearRounds: 1,
    });
  });

  test("without a queue or type changes the default rule", () => {
    expect(
      of("queue_length_high", {
        overrides: { queue_length_high: [{ threshold: 5 }] },
        seen: { groups: [groupOf({ pending: 6 })] },
      }),
    ).toMatchObject({ isBad: true, value: 6, threshold: 5 });
    expect(
      of("completion_rate_low", { overrides: { completion_rate_low: [{ isEnabled: false }] } }),
    ).toBeUndefined();
  });

  test("for a queue replaces the general rule, and can switch it off", () => {
    const groups = [groupOf({ pending: 60 }), groupOf({ queue: "bulk", pending: 60 })];
    const rules = (bulk: object) => ({ queue_length_high: [{ threshold: 50 }, { queue: "bulk", ...bulk }] });
    expect(bad({ overrides: rules({ threshold: 100 }), seen: { groups } })).toEqual([
      "queue_length_high default/*",
    ]);
    expect(bad({ overrides: rules({ isEnabled: false }), seen: { groups } })).toEqual([
      "queue_length_high default/*",
    ]);
    expect(bad({ overrides: rules({ threshold: 10 }), seen: { groups } })).toHaveLength(2);
  });

  test("for a type counts only that type", () => {
    const groups = [groupOf({ pending: 40 }), groupOf({ type: "other", pending: 40 })];
    const overrides = { queue_length_high: [{ jobType: "echo", threshold: 30 }] };
    expect(bad({ overrides, seen: { groups } })).toEqual(["queue_length_high default/echo"]);
  });

  test("with one threshold for the waiting time applies to all priorities without their own threshold", () => {
    const overrides = { oldest_pending_high: [{ threshold: 10, thresholdByPriority: { 0: 1000 } }] };
    const waiting = (priority: number) =>
      bad({ overrides, seen: { groups: [groupOf({ pending: 1, priority, oldestDueSeconds: 20 })] } }).length;
    expect([waiting(9), waiting(5), waiting(0)]).toEqual([1, 1, 0]);
  });

  test.each<[string, Partial<ActiveHours>, boolean]>([
    ["within the hours", { from: "08:00", to: "18:00" }, true],
    [
      "before them, in another time zone",
      { from: "08:00", to: "18:00", timeZone: "America/New_York" },
      false,
    ],
    ["after them", { from: "08:00", to: "10:00" }, false],
    ["past midnight, outside", { from: "22:00", to: "06:00" }, false],
    ["past midnight, inside, started the day before", { from: "22:00", to: "11:00", days: ["tue"] }, true],
    ["past midnight, started on another day", { from: "22:00", to: "11:00", days: ["wed"] }, false],
    ["on another day", { from: "00:00", to: "24:00", days: ["sat", "sun"] }, false],
    ["on this day", { from: "00:00", to: "24:00", days: ["wed"] }, true],
  ])("is checked only in its active hours: %s", (_, hours, isWatched) => {
    const days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
    const activeHours = { from: "00:00", to: "24:00", timeZone: "UTC", days, ...hours };
    const overrides = { completion_rate_low: [{ ...lowWatermark, activeHours }] };
    expect(bad({ overrides })).toEqual(isWatched ? ["completion_rate_low default/*"] : []);
  });
});

describe("the summary of", () => {
  test.each<[AlarmName, Looked, string]>([
    [
      "completion_rate_low",
      { seen: { minutes: [] } },
      "type sluice.canary in queue sluice: 0 jobs completed in 5 min; expected at least 1",
    ],
    [
      "oldest_pending_high",
      { seen: { groups: [groupOf({ pending: 1, oldestDueSeconds: 901 })] } },
      "queue default: the oldest due job has waited for 901 s (type echo, priority 5); the limit is 900 s",
    ],
    [
      "round_overdue",
      { seen: { rounds: [] } },
      "no drain round for 86400 s (the limit is 180 s), no reap round for 86400 s (the limit is 360 s)",
    ],
    [
      "breaker_open",
      { seen: { openBreakers: [{ type: "mail", openedAt: at }] } },
      "type mail: most attempts failed, so its circuit breaker is open",
    ],
    [
      "breaker_open",
      { seen: { openBreakers: [{ type: "mail", openedAt: minutesAgo(2) }] } },
      "type mail: most attempts failed, so its circuit breaker is open for 120 s",
    ],
    [
      "partition_blocked",
      { seen: { blockedKeys: [{ queue: "orders", keys: 2, since: minutesAgo(20), jobId: "7" }] } },
      "queue orders: 2 partition keys are blocked, the longest for 1200 s by the dead job 7; the limit is 900 s",
    ],
    [
      "partition_blocked",
      { seen: { blockedKeys: [{ queue: "orders", keys: 0, since: null, jobId: null }] } },
      "queue orders: no partition key is blocked; the limit is 900 s",
    ],
    [
      "flow_stalled",
      {
        seen: {
          idleFlows: [3000, 2000, 1000].map((minutes) => ({
            flowId: `f${minutes}`,
            since: minutesAgo(minutes),
          })),
        },
      },
      "the flow f3000 has made no progress for 180000 s, and 1 more for too long; the limit is 86400 s",
    ],
    [
      "flow_stalled",
      { seen: { idleFlows: [{ flowId: "7", since: minutesAgo(1) }] } },
      "the flow 7 has made no progress for 60 s; the limit is 86400 s",
    ],
    ["flow_stalled", {}, "no flow is running; the limit is 86400 s"],
    [
      "jobs_unreachable",
      {
        seen: {
          recentRounds: [reapRound({ stuck: { ms: 1, did: [1] }, unreachable: { ms: 1, did: [2] } })],
        },
      },
      "the last reap rounds brought back 2 jobs that no claim could find and released 1 job that waited for nothing",
    ],
    [
      "target_failing",
      { targets: [{ name: "ops", goneSince: null, failingSince: minutesAgo(16) }] },
      "the target ops has failed for 960 s; the limit is 900 s",
    ],
    ["target_failing", {}, "all alarm targets accept their notices; the limit is 900 s"],
    ["oldest_transaction", {}, "no transaction is open; the limit is 1800 s"],
    ["books_unbalanced", {}, "the books balance"],
    [
      "books_unbalanced",
      { seen: { impossibleStates } },
      "impossible: job 7 is in ready and lease at once, and 1 more",
    ],
    [
      "target_failing",
      { targets: [{ name: "ops", goneSince: minutesAgo(1), failingSince: null }] },
      "the target ops answered 410 and is switched off",
    ],
  ])("%s", (alarm, looked, summary) => {
    expect(of(alarm, looked)?.summary).toBe(summary);
  });
});

test("with 5,000 queues, each row is read a few times, not once for each other queue", () => {
  let reads = 0;
  const counted = <Row extends object>(row: Row): Row =>
    new Proxy(row, {
      get(target, field) {
        reads += 1;
        return Reflect.get(target, field);
      },
    });
  const queues = Array.from({ length: 5000 }, (_, n) => `queue-${n}`);
  const groups = queues.map((queue) => counted(groupOf({ queue, pending: 1, dead: 1 })));
  const minutes = queues.flatMap((queue) => [5, 15, 30].map((ago) => counted(minuteOf(ago, { queue }))));
  const rows = groups.length + minutes.length;
  expect(bad({ seen: { groups, minutes: [...beat, ...minutes] } })).toHaveLength(queues.length);
  expect(reads / rows).toBeLessThan(40);
});
