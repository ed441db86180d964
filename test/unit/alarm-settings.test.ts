// The settings of alarms and heartbeats: valid ones are parsed, and invalid ones are named in the error.
import { describe, expect, test } from "vitest";
import { SluiceError } from "../../src/core/errors.ts";
import { parseSettings } from "../../src/edge/settings/env.ts";

const good = { DATABASE_URL: "postgresql://u:p@db.example.com/app", SLUICE_ADMIN_KEY: "sk_0123456789abcdef" };
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const parse = (settings: object) =>
  parseSettings({
    ...good,
    ...Object.fromEntries(
      Object.entries(settings).map(([name, value]) => [
        name,
        typeof value === "string" ? value : JSON.stringify(value),
      ]),
    ),
  });

async function faultOf(settings: object): Promise<string> {
  try {
    await parse(settings);
    return "none";
  } catch (error) {
    expect(error).toBeInstanceOf(SluiceError);
    return (error as SluiceError).message.replace("invalid settings: ", "");
  }
}

const ruleOf = async (rules: object, alarm: string, index = 0) =>
  (await parse({ SLUICE_ALARM_RULES: rules })).alarmRules.filter((rule) => rule.alarm === alarm)[index];

describe("SLUICE_ALARM_TARGETS", () => {
  test("a target has a format and a secret, or two secrets during a rotation", async () => {
    const targets = [
      { name: "ops", url: "https://example.com/hook", format: "generic", secret },
      { name: "rotating", url: "https://example.com/hook", secret: [secret, secret] },
      { name: "Chat of us", url: "https://hooks.example.com/x", format: "slack" },
      { name: "pager", url: "https://events.example.com/v2/enqueue", format: "pagerduty", secret: "R0UT1NG" },
    ];
    expect((await parse({ SLUICE_ALARM_TARGETS: targets })).alarmTargets).toMatchObject([
      { name: "ops", url: "https://example.com/hook", format: "generic", secrets: [secret] },
      { name: "rotating", url: "https://example.com/hook", format: "generic", secrets: [secret, secret] },
      { name: "Chat of us", url: "https://hooks.example.com/x", format: "slack", secrets: [] },
      {
        name: "pager",
        url: "https://events.example.com/v2/enqueue",
        format: "pagerduty",
        secrets: ["R0UT1NG"],
      },
    ]);
  });

  test("may be an array instead of JSON text", async () => {
    const targets = [{ name: "ops", url: "https://example.com/", secret }];
    expect((await parseSettings({ ...good, SLUICE_ALARM_TARGETS: targets })).alarmTargets).toHaveLength(1);
  });

  const target = { name: "ops", url: "https://example.com/", secret };
  test.each([
    ["[", "SLUICE_ALARM_TARGETS must be JSON"],
    [[{ ...target, secret: "hunter2" }], "SLUICE_ALARM_TARGETS.0.secret"],
    [[{ ...target, secret: undefined }], "SLUICE_ALARM_TARGETS.0.secret"],
    [[{ ...target, format: "email" }], "SLUICE_ALARM_TARGETS.0.format"],
    [[{ ...target, extra: 1 }], "SLUICE_ALARM_TARGETS.0"],
    [[target, target], "SLUICE_ALARM_TARGETS has two targets with the same name"],
    [[{ ...target, url: "http://127.0.0.1/" }], "SLUICE_ALARM_TARGETS.0.url must be an https URL"],
    [
      [target, { ...target, name: "b", url: "https://10.0.0.1/" }],
      "SLUICE_ALARM_TARGETS.1.url must not be a private address",
    ],
  ])("an invalid target is named by its path, without its secret: %j", async (targets, message) => {
    const fault = await faultOf({ SLUICE_ALARM_TARGETS: targets });
    expect(fault).toContain(message);
    expect(fault).not.toContain("hunter2");
  });
});

describe("SLUICE_ALARM_RULES", () => {
  test("a rule overrides the default of its name", async () => {
    expect(
      await ruleOf({ queue_length_high: { above: 5, for_rounds: 1 } }, "queue_length_high"),
    ).toMatchObject({
      threshold: 5,
      forRounds: 1,
      clearRounds: 1,
      queue: null,
    });
    expect(await ruleOf({ dead_letters: { enabled: false } }, "dead_letters")).toMatchObject({
      isEnabled: false,
    });
  });

  test("rules for queues are added to the default rule", async () => {
    const low = { queue: "default", per_minute_below: 1, window_minutes: 1, for_rounds: 1 };
    expect(await ruleOf({ completion_rate_low: low }, "completion_rate_low", 0)).toMatchObject({
      jobType: "sluice.canary",
    });
    expect(await ruleOf({ completion_rate_low: low }, "completion_rate_low", 1)).toMatchObject({
      queue: "default",
      jobType: null,
      threshold: 1,
      windowMinutes: 1,
      graceMinutes: 1,
      forRounds: 1,
      severity: "critical",
    });
    const two = {
      queue_length_high: [
        { queue: "a", above: 1 },
        { queue: "b", job_type: "t", above: 2 },
      ],
    };
    expect(await ruleOf(two, "queue_length_high", 2)).toMatchObject({
      queue: "b",
      jobType: "t",
      threshold: 2,
    });
  });

  test("a rule can set active hours, severity, repeats and a silence", async () => {
    const rule = {
      severity: "info",
      repeat_minutes: 30,
      silenced_until: "2026-01-01T00:00:00Z",
      above_by_priority: { 9: 10 },
      active_hours: { from: "08:00", to: "18:00", time_zone: "Europe/Berlin", days: ["mon"] },
    };
    expect(await ruleOf({ oldest_pending_high: rule }, "oldest_pending_high")).toMatchObject({
      severity: "info",
      repeatMinutes: 30,
      silencedUntil: new Date("2026-01-01T00:00:00Z"),
      thresholdByPriority: { 9: 10, 5: 900 },
      activeHours: { from: "08:00", to: "18:00", timeZone: "Europe/Berlin", days: ["mon"] },
    });
  });

  test.each([
    ["{", "SLUICE_ALARM_RULES must be JSON"],
    [{ queue_lenght_high: {} }, "queue_lenght_high"],
    [{ queue_length_high: { above: "many" } }, "SLUICE_ALARM_RULES.queue_length_high.0.above"],
    [{ queue_length_high: { abvoe: 1 } }, "abvoe"],
    [
      { queue_length_high: [{ above: 1 }, { above: 2 }] },
      "SLUICE_ALARM_RULES.queue_length_high.1 is a second rule",
    ],
    [
      { completion_rate_low: { queue: "default" } },
      "SLUICE_ALARM_RULES.completion_rate_low.0 needs per_minute_below",
    ],
    [{ oldest_transaction: { queue: "default" } }, "SLUICE_ALARM_RULES.oldest_transaction.0"],
    [{ job_expired: { window_minutes: 0 } }, "SLUICE_ALARM_RULES.job_expired.0.window_minutes"],
    [
      { dead_letters: { active_hours: { from: "8", to: "18:00" } } },
      "SLUICE_ALARM_RULES.dead_letters.0.active_hours.from must be a time such as 08:00",
    ],
    [
      { dead_letters: { active_hours: { from: "08:00", to: "18:00", time_zone: "Mars" } } },
      "SLUICE_ALARM_RULES.dead_letters.0.active_hours.time_zone must be a time zone such as Europe/Berlin",
    ],
    [{ dead_letters: { silenced_until: "tomorrow" } }, "SLUICE_ALARM_RULES.dead_letters.0.silenced_until"],
  ])("an invalid rule is named by its path: %j", async (rules, message) => {
    expect(await faultOf({ SLUICE_ALARM_RULES: rules })).toContain(message);
  });
});

describe("SLUICE_HEARTBEAT_URL", () => {
  test("is one URL for all rounds, or one for each kind", async () => {
    const one = "https://hc.example.com/abc";
    expect((await parse({ SLUICE_HEARTBEAT_URL: one })).heartbeatUrls).toEqual({
      drain: one,
      reap: one,
      watch: one,
    });
    expect((await parse({ SLUICE_HEARTBEAT_URL: { watch: one } })).heartbeatUrls).toEqual({ watch: one });
  });

  test.each([
    ["nowhere", "SLUICE_HEARTBEAT_URL must be an http or https URL"],
    [{ drain: "nowhere" }, "SLUICE_HEARTBEAT_URL.drain must be an http or https URL"],
    [{ sleep: "https://example.com" }, "SLUICE_HEARTBEAT_URL"],
    ["https://127.0.0.1/beat", "SLUICE_HEARTBEAT_URL must not be a private address"],
  ])("an invalid URL is named: %j", async (urls, message) => {
    expect(await faultOf({ SLUICE_HEARTBEAT_URL: urls })).toContain(message);
  });
});
