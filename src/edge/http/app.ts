// The Worker's app: the HTTP API, and the dashboard on top of it. The routes are built once per isolate. Everything that
// belongs to one request comes as Hono's bindings, so nothing of a request outlives it.
import { Hono } from "hono";
import { SluiceError } from "../../core/errors.ts";
import { answerError } from "../dashboard/answer.ts";
import { createDashboard } from "../dashboard/routes.ts";
import { addApi, unknownPath } from "./api.ts";
import type { AppEnv } from "./app-env.ts";
import { problemResponse } from "./codec/problem.ts";

export const app = new Hono<AppEnv>();
addApi(app);
app.route(
  "/",
  createDashboard((request, env, context) => app.fetch(request, env, context)),
);
app.notFound((context) => {
  const isBrowser = context.req.header("accept")?.includes("text/html");
  if (!isBrowser) return problemResponse(unknownPath(context.req));
  return answerError(context, new SluiceError("not_found", `there is no page at ${context.req.path}`));
});
