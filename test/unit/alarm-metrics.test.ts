// The metrics of alarms: how many fire, and the state of each target.
import { expect, test } from "vitest";
import { alarmFamilies } from "../../src/core/metrics/alarm-metrics.ts";
import { toText } from "../../src/core/metrics/prometheus-text.ts";
import { firing } from "../support/alarms.ts";
import { parseMetrics } from "../support/prometheus-lint.ts";

test("the metrics count the firing alarms of each name, and show the failing targets and pending deliveries", () => {
  const states = [firing, { ...firing, jobType: "b" }, { ...firing, jobType: "c", phase: "ok" as const }];
  const targets = [
    { name: "ops", goneSince: null, failingSince: null, pending: 0 },
    { name: "chat", goneSince: null, failingSince: new Date(), pending: 3 },
    { name: "gone", goneSince: new Date(), failingSince: null, pending: 1 },
  ];
  const text = toText(alarmFamilies(states, targets));
  expect(parseMetrics(text).faults).toEqual([]);
  for (const line of [
    'sluice_firing_alarms{alarm="dead_letters"} 2',
    'sluice_firing_alarms{alarm="round_overdue"} 0',
    'sluice_alarm_target_failing{target="ops"} 0',
    'sluice_alarm_target_failing{target="chat"} 1',
    'sluice_alarm_target_failing{target="gone"} 1',
    'sluice_pending_deliveries{target="chat"} 3',
  ])
    expect(text).toContain(`${line}\n`);
});
