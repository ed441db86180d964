// The metrics in the text format of Prometheus, without those of the clock. A watch round leaves them with the clock if the
// database may sleep, and GET /metrics answers with them while it does.
import { alarmFamilies } from "../core/metrics/alarm-metrics.ts";
import { maxPairs, metricsOf } from "../core/metrics/metrics.ts";
import { toText } from "../core/metrics/prometheus-text.ts";
import { durations, readAlarms, snapshot } from "../core/sql/index.ts";
import { targetStates } from "../queue/alarms/targets.ts";
import type { Ports } from "../queue/ports.ts";
import type { Settings } from "./settings/env.ts";

export async function readMetrics({ db }: Pick<Ports, "db">, { alarmTargets }: Settings): Promise<string> {
  const [current, durationBuckets, alarms] = await Promise.all([
    db.run(snapshot()),
    db.run(durations({ pairs: maxPairs })),
    db.run(readAlarms()),
  ]);
  const states = alarms.alarms.map(({ state }) => state);
  const targets = targetStates(alarmTargets, alarms.targets);
  return toText([...metricsOf(current, durationBuckets), ...alarmFamilies(states, targets)]);
}
