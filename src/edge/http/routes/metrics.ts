// GET /metrics: the metrics in the text format of Prometheus.
import { alarmFamilies } from "../../../core/metrics/alarm-metrics.ts";
import { maxPairs, metricsOf } from "../../../core/metrics/metrics.ts";
import { contentType, toText } from "../../../core/metrics/prometheus-text.ts";
import { durations, readAlarms, snapshot } from "../../../core/sql/index.ts";
import { targetStates } from "../../../queue/alarms/targets.ts";
import type { Handlers } from "../operation-routes.ts";

export const getMetrics: Handlers["getMetrics"] = async (context) => {
  const { ports, settings } = context.env;
  const [current, durationBuckets, alarms] = await Promise.all([
    ports.db.run(snapshot()),
    ports.db.run(durations({ pairs: maxPairs })),
    ports.db.run(readAlarms()),
  ]);
  const states = alarms.alarms.map(({ state }) => state);
  const targets = targetStates(settings.alarmTargets, alarms.targets);
  const families = [...metricsOf(current, durationBuckets), ...alarmFamilies(states, targets)];
  return context.body(toText(families), 200, { "content-type": contentType });
};
