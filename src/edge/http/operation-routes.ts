// Makes the routes from the table of operations, which has the method, path, roles, query and body of each. A handler gets
// the parsed query and body, and runs only for callers who may call the operation.
import type { Context, Handler, Hono } from "hono";
import type * as z from "zod";
import type { Operation } from "../../contract/operation.ts";
import { type OperationId, operations } from "../../contract/operations.ts";
import { SluiceError } from "../../core/errors.ts";
import type { AppEnv } from "./app-env.ts";
import { parseQuery, readBody } from "./codec/body.ts";
import { problemResponse } from "./codec/problem.ts";
import { requireRole } from "./guards/auth.ts";

/** One handler for each operation, by the operation's id. A missing one does not compile. */
export type Handlers = { [Id in OperationId]: OperationHandler<(typeof operations)[Id]> };

type OperationHandler<Described extends Operation> = (
  context: Context<AppEnv>,
  request: { body: Body<Described>; query: Query<Described> },
) => Response | Promise<Response>;

type Body<Described> = Described extends { body: { schema: infer Schema } } ? z.output<Schema> : undefined;
type Query<Described> = Described extends { query: infer Schema } ? z.output<Schema> : undefined;

export function addOperations(app: Hono<AppEnv>, handlers: Handlers): void {
  const byPath = Map.groupBy(Object.entries<Operation>(operations), ([, { path }]) => path);
  // Paths without parameters come first, so that GET /v1/jobs/batch is a 405 and does not look for a job "batch".
  for (const [path, group] of [...byPath].toSorted(([a], [b]) => parametersIn(a) - parametersIn(b))) {
    const routePath = path.replace(/\{(\w+)\}/g, ":$1");
    // The type `Handlers` ensures that the handler fits its operation. TypeScript cannot check that in a loop.
    for (const [id, operation] of group)
      app.on(httpMethod(operation), routePath, toHandler(operation, handlers[id as OperationId] as never));
    app.all(routePath, allowOnly(...group.map(([, operation]) => httpMethod(operation))));
  }
}

/** Answers 405 and names the methods. Register it after the handlers of the path. */
export function allowOnly(...methods: readonly string[]): Handler {
  // Hono answers HEAD with the handler of GET.
  const allow = methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])).join(", ");
  return ({ req }) => {
    const detail = `${req.path} supports ${allow}, not ${req.method}`;
    const response = problemResponse(new SluiceError("method_not_allowed", detail));
    response.headers.set("allow", allow);
    return response;
  };
}

function toHandler(operation: Operation, handle: OperationHandler<Operation>): Handler<AppEnv> {
  const { roles, body, query } = operation;
  return async (context) => {
    if (roles) context.set("caller", await requireRole(context, roles));
    const held = roles && operation.method !== "get" ? holdAwake(context) : undefined;
    const response = await handle(context, {
      body: (body && (await readBody(context, body))) as never,
      query: (query && parseQuery(context, query)) as never,
    });
    await held;
    return response;
  };
}

/**
 * Tells the clock that there may be something to do. If the crons may let the database sleep, the caller's answer waits for
 * this: core/policy/clock.ts says why.
 */
function holdAwake({ env, executionCtx }: Context<AppEnv>): Promise<void> | undefined {
  const held = env.alarmClock.holdAwake();
  if (env.settings.maxSleepMinutes > 0) return held;
  executionCtx.waitUntil(held);
  return undefined;
}

function parametersIn(path: string): number {
  return path.split("{").length - 1;
}

function httpMethod({ method }: Operation): string {
  return method.toUpperCase();
}
