// GET /metrics: for Prometheus, from one statement. See core/metrics.ts.
import { Hono } from "hono";
import { SluiceError } from "../../core/errors.ts";
import { metricsOf } from "../../core/metrics.ts";
import { contentType, toText } from "../../core/prometheus-text.ts";
import { snapshot } from "../../core/sql/index.ts";
import type { AppEnv } from "./app.ts";
import { requireAdmin } from "./auth.ts";

export const metrics = new Hono<AppEnv>();
metrics.use(requireAdmin);

metrics.get("/", async (context) => {
  const [seen] = await context.env.queue.db.run(snapshot());
  if (!seen) throw new SluiceError("internal", "the snapshot has no row");
  return context.body(toText(metricsOf(seen)), 200, { "content-type": contentType });
});
