// GET /metrics: for Prometheus. See core/metrics.ts and core/alarm-metrics.ts.
import { Hono } from "hono";
import { alarmFamilies } from "../../core/alarm-metrics.ts";
import { SluiceError } from "../../core/errors.ts";
import { maxPairs, metricsOf } from "../../core/metrics.ts";
import { contentType, toText } from "../../core/prometheus-text.ts";
import { durations, readAlarms, snapshot } from "../../core/sql/index.ts";
import { keyTargets } from "../../queue/notify.ts";
import { targetStates } from "../../queue/targets.ts";
import type { AppEnv } from "./app.ts";
import { requireAdmin } from "./auth.ts";

export const metrics = new Hono<AppEnv>();
metrics.use(requireAdmin);

metrics.get("/", async (context) => {
  const { queue, settings } = context.env;
  const [[seen], [took], [alarms]] = await Promise.all([
    queue.db.run(snapshot()),
    queue.db.run(durations({ pairs: maxPairs })),
    queue.db.run(readAlarms()),
  ]);
  if (!seen || !took || !alarms) throw new SluiceError("internal", "the snapshot has no row");
  const states = alarms.alarms.map(({ state }) => state);
  const targets = targetStates(await keyTargets(settings.alarmTargets), alarms.targets);
  const families = [...metricsOf(seen, took), ...alarmFamilies(states, targets)];
  return context.body(toText(families), 200, { "content-type": contentType });
});
