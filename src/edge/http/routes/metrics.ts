// GET /metrics: the metrics in the text format of Prometheus. It does not wake a database that sleeps.
import { clockFamilies } from "../../../core/metrics/clock-metrics.ts";
import { contentType, toText } from "../../../core/metrics/prometheus-text.ts";
import type { ClockReading } from "../../clock/clock-binding.ts";
import { readMetrics } from "../../metrics-text.ts";
import type { Handlers } from "../operation-routes.ts";

export const getMetrics: Handlers["getMetrics"] = async (context) => {
  const { ports, settings, alarmClock } = context.env;
  const reading = await alarmClock.read();
  const isAsleep = typeof reading === "object" && reading?.isAsleep === true;
  const text = isAsleep ? (reading.metrics ?? "") : await readMetrics(ports, settings);
  return context.body(text + clockText(reading), 200, { "content-type": contentType });
};

function clockText(reading: ClockReading | "unreachable" | null): string {
  if (reading === null) return "";
  if (reading === "unreachable")
    return toText(clockFamilies({ isReachable: false, isAsleep: false, nextDueSeconds: null }));
  const { state, isAsleep, nowMs } = reading;
  const nextDueSeconds = state.dueAtMs === null ? null : (state.dueAtMs - nowMs) / 1000;
  return toText(clockFamilies({ isReachable: true, isAsleep, nextDueSeconds }));
}
