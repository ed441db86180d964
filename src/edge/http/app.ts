// The HTTP API: one Hono app a file, put together here. What a request needs comes as Hono's bindings, so that
// the routes are built once and nothing of one request outlives it.
import { Hono } from "hono";
import type { JobRegistry } from "../../jobs/registry.ts";
import type { Queue } from "../../queue/ports.ts";
import type { Settings } from "../env.ts";
import { admin } from "./admin.ts";
import type { Caller } from "./auth.ts";
import { drains } from "./drains.ts";
import { health } from "./health.ts";
import { jobs } from "./jobs.ts";
import { onError, onNotFound } from "./problem.ts";
import { stats } from "./stats.ts";

export interface AppEnv {
  Variables: { caller: Caller };
  Bindings: { settings: Settings; queue: Queue; registry: JobRegistry; nudge(queueName: string): void };
}

export const app = new Hono<AppEnv>()
  .route("/v1/jobs", jobs)
  .route("/v1/admin", admin)
  .route("/v1/stats", stats)
  .route("/internal/drains", drains)
  .route("/health", health)
  .onError(onError)
  .notFound(onNotFound);
