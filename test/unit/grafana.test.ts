// The dashboard and the alert rules use only metrics that exist, and use all of them.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { AlarmName, AlarmRule } from "../../src/core/alarms/alarm.ts";
import { alarmRules } from "../../src/core/alarms/alarm-defaults.ts";
import { alarmFamilies } from "../../src/core/metrics/alarm-metrics.ts";
import { metricsOf } from "../../src/core/metrics/metrics.ts";
import { fullDurations, fullSnapshot } from "../support/full-snapshot.ts";

const folder = join(import.meta.dirname, "../../infra/grafana");
const alerts = readFileSync(join(folder, "alerts.yaml"), "utf8");
const dashboard = JSON.parse(readFileSync(join(folder, "dashboard.json"), "utf8")) as {
  panels: { id: number; type: string; gridPos: object; targets?: { expr: string }[] }[];
};
const target = { name: "ops", goneSince: null, failingSince: null, pending: 0 };
const exposed = [...metricsOf(fullSnapshot, fullDurations), ...alarmFamilies([], [target])];
const rules = alerts.split(/\n(?= {6}- alert: )/).slice(1);

/** Every series that an expression can name. */
const series = new Map(
  exposed.flatMap(({ name, samples }) => samples.map(({ suffix = "" }) => [name + suffix, name] as const)),
);
const expressions = [
  ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...rules.map((rule) => /^ {8}expr: (.+)$/m.exec(rule)?.[1] ?? ""),
];
const used = expressions.flatMap((expr) => [...expr.matchAll(/\bsluice_\w+/g)].map(([name]) => name));

test("every metric that they use exists", () => {
  expect(used.filter((name) => !series.has(name))).toEqual([]);
});

test("they use every metric that exists", () => {
  const families = new Set(used.map((name) => series.get(name)));
  expect(exposed.map(({ name }) => name).filter((name) => !families.has(name))).toEqual([]);
});

test("every label that they use exists", () => {
  const labels = new Set(
    exposed.flatMap(({ samples }) => samples.flatMap((sample) => Object.keys(sample.labels ?? {}))),
  );
  const named = expressions.flatMap((expr) => [
    ...[...expr.matchAll(/(\w+)=~?"/g)].map(([, label = ""]) => label),
    ...[...expr.matchAll(/\b(?:by|ignoring) \(([^)]+)\)/g)].flatMap(([, list = ""]) => list.split(", ")),
  ]);
  expect(named.filter((label) => !labels.has(label))).toEqual([]);
});

/** The default alarm rules as expressions of Prometheus. */
const defaults = alarmRules();
const ruleOf = (alarm: AlarmName) => {
  const rule = defaults.find((one) => one.alarm === alarm);
  if (!rule) throw new Error(`there is no default rule for ${alarm}`);
  return rule;
};
const round = (seconds: number, kind: string) => `sluice_last_round_age_seconds{kind="${kind}"} > ${seconds}`;
const oldest = (from: number, to: number) =>
  `sluice_oldest_due_age_seconds{priority=~"[${from}-${to}]"} > ${ruleOf("oldest_pending_high").thresholdByPriority[from]}`;
const byDefault: Partial<Record<AlarmName, Record<string, (rule: AlarmRule) => string>>> = {
  completion_rate_low: {
    SluiceCompletionRateLow: ({ threshold, windowMinutes, jobType }) =>
      `sum(increase(sluice_completed_jobs_total{type="${jobType}"}[${windowMinutes}m])) < ${threshold * windowMinutes}`,
  },
  queue_length_high: {
    SluiceQueueLengthHigh: ({ threshold }) => `sum by (queue) (sluice_pending_jobs) > ${threshold}`,
  },
  queue_growing: {
    SluiceQueueGrowing: ({ threshold, windowMinutes: minutes }) =>
      `sum by (queue) (delta(sluice_pending_jobs[${minutes}m])) - sum by (queue) (delta(sluice_scheduled_jobs[${minutes}m])) > ${threshold}`,
  },
  oldest_pending_high: {
    SluiceOldestPendingHigh: () => [oldest(0, 2), oldest(3, 6), oldest(7, 9)].join(" or "),
  },
  job_expired: {
    SluiceJobExpired: ({ threshold, windowMinutes }) =>
      `sum by (queue, type) (increase(sluice_expired_jobs_total[${windowMinutes}m])) > ${threshold}`,
  },
  dead_letters: { SluiceDeadLetters: ({ threshold }) => `sluice_dead_jobs > ${threshold}` },
  breaker_open: { SluiceBreakerOpen: ({ threshold }) => `sluice_breaker_open > ${threshold}` },
  partition_blocked: {
    SluicePartitionBlocked: ({ threshold }) => `sluice_blocked_partition_age_seconds > ${threshold}`,
  },
  flow_stalled: {
    SluiceFlowStalled: ({ threshold }) => `sluice_idle_flow_age_seconds > ${threshold}`,
  },
  oldest_transaction: {
    SluiceOldestTransaction: ({ threshold }) => `sluice_oldest_transaction_age_seconds > ${threshold}`,
  },
  round_overdue: {
    SluiceRoundOverdue: ({ threshold }) => `${round(threshold, "drain")} or ${round(2 * threshold, "reap")}`,
    SluiceWatchOverdue: ({ threshold }) => round(2 * threshold, "watch"),
    SluiceRoundFailed: () => 'sluice_last_round_failed{kind=~"drain|reap"} == 1',
    SluiceLeasesNotReaped: ({ threshold }) => `sluice_expired_lease_age_seconds > ${2 * threshold}`,
  },
  enqueue_errors: {
    SluiceEnqueueErrors: ({ threshold, windowMinutes }) =>
      `delta(sluice_recent_enqueue_errors[${windowMinutes}m]) > ${threshold}`,
  },
  books_unbalanced: {
    SluiceBooksUnbalanced: ({ threshold }) =>
      `abs(sluice_books_jobs{side="enqueued"} - ignoring (side) sluice_books_jobs{side="states"}) > ${threshold}`,
    SluiceImpossibleStates: ({ threshold }) => `sluice_impossible_states > ${threshold}`,
  },
  target_failing: { SluiceAlarmTargetFailing: () => "sluice_alarm_target_failing == 1" },
};

describe("the alert rules", () => {
  const watchMinutes = 2;
  const expected = (Object.keys(byDefault) as AlarmName[]).flatMap((alarm) =>
    Object.entries(byDefault[alarm] ?? {}).map(([name, exprOf]) => ({ alarm, name, exprOf })),
  );

  test.each(expected)("$name equals the default rule of $alarm", ({ alarm, name, exprOf }) => {
    const rule = ruleOf(alarm);
    // A target's threshold is a time. All other alerts must last for the rounds that the alarm needs.
    const minutes = alarm === "target_failing" ? rule.threshold / 60 : (rule.forRounds - 1) * watchMinutes;
    const text = rules.find((one) => one.startsWith(`      - alert: ${name}\n`)) ?? "";
    expect(text).toContain(`\n        expr: ${exprOf(rule)}\n`);
    expect(text).toContain(`\n        for: ${minutes}m\n`);
    expect(text).toContain(`\n        labels: { severity: ${rule.severity} }\n`);
    expect(text).toContain(`runbook: docs/alarms.md#${alarm}`);
  });

  test("one general rule covers the alarms without their own rule", () => {
    expect(alerts).toContain(`sluice_firing_alarms{alarm!~"${Object.keys(byDefault).join("|")}"} > 0`);
  });

  test.each(rules.map((rule) => [/- alert: (\w+)/.exec(rule)?.[1], rule]))(
    "%s has a severity, a summary and a runbook",
    (name, rule) => {
      expect(name).toMatch(/^Sluice[A-Z]\w+$/);
      expect(rule).toMatch(/^ {8}labels: \{ severity: (warning|critical) \}$/m);
      expect(rule).toMatch(/^ {10}summary: .+$/m);
      expect(rule).toMatch(/^ {10}runbook: docs\/alarms\.md#[a-z_]+$/m);
    },
  );

  test("link to runbooks that exist", () => {
    const runbooks = readFileSync(join(import.meta.dirname, "../../docs/alarms.md"), "utf8");
    for (const [, section] of alerts.matchAll(/runbook: docs\/alarms\.md#(\w+)/g))
      expect(runbooks.toLowerCase()).toContain(`\n## ${section}\n`);
  });

  test("have unique names", () => {
    const names = rules.map((rule) => /- alert: (\w+)/.exec(rule)?.[1]);
    expect(new Set(names).size).toBe(names.length);
  });
});

test("the dashboard's panels have unique ids and positions", () => {
  for (const entry of ["id", "gridPos"] as const) {
    const values = dashboard.panels.map((panel) => JSON.stringify(panel[entry]));
    expect(new Set(values).size).toBe(values.length);
  }
});
