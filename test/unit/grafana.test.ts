// The dashboard and the alert rules use the metrics that there are, and every metric is used.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { alarmFamilies } from "../../src/core/alarm-metrics.ts";
import { metricsOf } from "../../src/core/metrics.ts";
import { fullDurations, fullSnapshot } from "../support/full-snapshot.ts";

const folder = join(import.meta.dirname, "../../infra/grafana");
const alerts = readFileSync(join(folder, "alerts.yaml"), "utf8");
const dashboard = JSON.parse(readFileSync(join(folder, "dashboard.json"), "utf8")) as {
  panels: { id: number; type: string; gridPos: object; targets?: { expr: string }[] }[];
};
const target = { name: "ops", offSince: null, failingSince: null, pending: 0 };
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

test("every metric that is used is exposed", () => {
  expect(used.filter((name) => !series.has(name))).toEqual([]);
});

test("every metric that is exposed is used", () => {
  const families = new Set(used.map((name) => series.get(name)));
  expect(exposed.map(({ name }) => name).filter((name) => !families.has(name))).toEqual([]);
});

test("every label that is used is exposed", () => {
  const labels = new Set(
    exposed.flatMap(({ samples }) => samples.flatMap((sample) => Object.keys(sample.labels ?? {}))),
  );
  const named = expressions.flatMap((expr) => [
    ...[...expr.matchAll(/(\w+)=~?"/g)].map(([, label = ""]) => label),
    ...[...expr.matchAll(/\b(?:by|ignoring) \(([^)]+)\)/g)].flatMap(([, list = ""]) => list.split(", ")),
  ]);
  expect(named.filter((label) => !labels.has(label))).toEqual([]);
});

describe("the alert rules", () => {
  test.each(rules.map((rule) => [/- alert: (\w+)/.exec(rule)?.[1], rule]))("%s is whole", (name, rule) => {
    expect(name).toMatch(/^Sluice[A-Z]\w+$/);
    expect(rule).toMatch(/^ {8}labels: \{ severity: (warning|critical) \}$/m);
    expect(rule).toMatch(/^ {10}summary: .+$/m);
    expect(rule).toMatch(/^ {10}runbook: docs\/alarms\.md#[a-z_]+$/m);
  });

  test("lead to a runbook that there is", () => {
    const runbooks = readFileSync(join(import.meta.dirname, "../../docs/alarms.md"), "utf8");
    for (const [, section] of alerts.matchAll(/runbook: docs\/alarms\.md#(\w+)/g))
      expect(runbooks).toContain(`\n## ${section}\n`);
  });

  test("have names of their own", () => {
    const names = rules.map((rule) => /- alert: (\w+)/.exec(rule)?.[1]);
    expect(new Set(names).size).toBe(names.length);
  });
});

test("the dashboard's panels have ids and places of their own", () => {
  for (const entry of ["id", "gridPos"] as const) {
    const values = dashboard.panels.map((panel) => JSON.stringify(panel[entry]));
    expect(new Set(values).size).toBe(values.length);
  }
});
