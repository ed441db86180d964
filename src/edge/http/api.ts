// The HTTP API: every operation, and what callers do not see as one. It is the whole app of the command line over SQL
// (cli/over-sql.ts), so it imports nothing that needs Cloudflare or a browser.
import type { Hono } from "hono";
import { operations } from "../../contract/operations.ts";
import { SluiceError } from "../../core/errors.ts";
import type { AppEnv } from "./app-env.ts";
import { onError, problemResponse } from "./codec/problem.ts";
import { countEnqueueErrors } from "./guards/enqueue-errors.ts";
import { guardAnswer } from "./guards/guard-answer.ts";
import { addOperations, allowOnly } from "./operation-routes.ts";
import * as alarmHistory from "./routes/alarm-history.ts";
import * as alarms from "./routes/alarms.ts";
import * as audit from "./routes/audit.ts";
import * as deadLetters from "./routes/dead-letters.ts";
import * as deadRuns from "./routes/dead-runs.ts";
import * as deployment from "./routes/deployment.ts";
import { showDocs, showOpenapi } from "./routes/docs.ts";
import { startDrain, wakeUp } from "./routes/drains.ts";
import * as flows from "./routes/flows.ts";
import * as health from "./routes/health.ts";
import * as jobTypes from "./routes/job-types.ts";
import * as jobs from "./routes/jobs.ts";
import * as keys from "./routes/keys.ts";
import * as metrics from "./routes/metrics.ts";
import * as nudges from "./routes/nudges.ts";
import * as pull from "./routes/pull.ts";
import * as queues from "./routes/queues.ts";
import * as rounds from "./routes/rounds.ts";
import * as schedules from "./routes/schedules.ts";
import * as stats from "./routes/stats.ts";
import * as steps from "./routes/steps.ts";
import * as workers from "./routes/workers.ts";

/** Each file of routes/ exports its handlers under the ids of their operations. */
const handlers = {
  ...{ ...jobs, ...pull, ...steps, ...deadLetters, ...deadRuns, ...jobTypes, ...queues, ...keys },
  ...{ ...audit, ...alarms, ...stats, ...metrics, ...health, ...workers, ...flows, ...schedules, ...nudges },
  ...{ ...deployment, ...alarmHistory, ...rounds },
};

export function addApi(app: Hono<AppEnv>): void {
  app.use(guardAnswer);
  // This comes before the guards of the routes, because a key that could not be looked up is a failed enqueue too.
  const { enqueueJob, enqueueJobs, enqueueFlow } = operations;
  app.on("POST", [enqueueJob.path, enqueueJobs.path, enqueueFlow.path], countEnqueueErrors);
  addOperations(app, handlers);
  app.post("/internal/drains/:queue", startDrain).all(allowOnly("POST"));
  app.post("/internal/wake", wakeUp).all(allowOnly("POST"));
  app.get("/openapi.json", showOpenapi).all(allowOnly("GET"));
  app.get("/docs", showDocs).all(allowOnly("GET"));
  app.onError(onError);
  app.notFound(({ req }) => problemResponse(unknownPath(req)));
}

export function unknownPath({ method, path }: { method: string; path: string }): SluiceError {
  return new SluiceError("not_found", `${method} ${path} is not part of this API`);
}
