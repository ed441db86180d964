// A plain firing alarm for tests.
import type { AlarmState } from "../../src/core/alarms/alarm.ts";

const at = new Date("2026-03-04T10:00:00Z");

export const firing: AlarmState = {
  alarm: "dead_letters",
  queue: "default",
  jobType: "echo",
  phase: "firing",
  since: at,
  changedAt: at,
  recent: [],
  clearRounds: 0,
  notified: "firing",
  notifiedAt: at,
  severity: "warning",
  value: 1,
  threshold: 0,
  summary: "1 dead letter",
};
