// The HTTP API: one Hono app a file, put together here. What a request needs comes as Hono's bindings, so that
// the routes are built once and nothing of one request outlives it.
import { Hono } from "hono";
import { SluiceError } from "../../core/errors.ts";
import type { AppEnv } from "./app-env.ts";
import { onError, problemResponse } from "./codec/problem.ts";
import { countEnqueueErrors } from "./guards/enqueue-errors.ts";
import { guardAnswer } from "./guards/guard-answer.ts";
import { admin } from "./routes/admin.ts";
import { docs } from "./routes/docs.ts";
import { drains } from "./routes/drains.ts";
import { health } from "./routes/health.ts";
import { jobs } from "./routes/jobs.ts";
import { metrics } from "./routes/metrics.ts";
import { claims, held, settlements } from "./routes/pull.ts";
import { stats } from "./routes/stats.ts";

export const app = new Hono<AppEnv>()
  .use(guardAnswer)
  .use(countEnqueueErrors)
  .route("/v1/jobs", jobs)
  .route("/v1/jobs", held)
  .route("/v1/claims", claims)
  .route("/v1/settlements", settlements)
  .route("/v1/admin", admin)
  .route("/v1/stats", stats)
  .route("/internal/drains", drains)
  .route("/health", health)
  .route("/metrics", metrics)
  .route("/", docs)
  .onError(onError)
  .notFound((context) => {
    const { method, path } = context.req;
    const allowed = methodsAt(path);
    if (allowed.size === 0) {
      return problemResponse(new SluiceError("not_found", `${method} ${path} is not part of this API`));
    }
    const detail = `${path} takes ${[...allowed].join(", ")}, not ${method}`;
    const response = problemResponse(new SluiceError("method_not_allowed", detail));
    response.headers.set("allow", [...allowed].join(", "));
    return response;
  });

/** The methods of the routes that a path fits; none, and there is no such path. */
function methodsAt(path: string): Set<string> {
  const fitting = app.routes.filter(
    (route) => route.method !== "ALL" && new RegExp(`^${route.path.replace(/:[^/]+/g, "[^/]+")}$`).test(path),
  );
  // A path that a route names in full is not also a parameter of another.
  const exact = fitting.filter((route) => route.path === path);
  const methods = (exact.length > 0 ? exact : fitting).map((route) => route.method);
  return new Set(methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])));
}
