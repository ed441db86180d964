// Enqueues that were answered with a 5xx or refused for depth: each isolate counts them, and the next request or round of
// it that finds the database writes the count. What it has not written when it ends is lost: this is for alarms, and
// nothing rests on it.

import type { Context, MiddlewareHandler } from "hono";
import { describeError } from "../../../core/database-errors.ts";
import { SluiceError } from "../../../core/errors.ts";
import { recordEnqueueErrors } from "../../../core/sql/index.ts";
import type { Ports } from "../../../queue/ports.ts";
import type { Settings } from "../../settings/env.ts";
import type { AppEnv } from "../app-env.ts";

/** However many are refused, an isolate writes no more often. */
const writeEveryMs = 5_000;

/** By database: tests have several. */
const counted = new Map<string, { errors: number; writtenAtMs: number }>();

export const countEnqueueErrors: MiddlewareHandler<AppEnv> = async (context, next) => {
  await next();
  const { ports, settings } = context.env;
  if (isEnqueue(context) && hasFailed(context)) add(settings, 1);
  if (context.res.status < 500 && hasUnwritten(ports, settings))
    context.executionCtx.waitUntil(writeEnqueueErrors(ports, settings));
};

export async function writeEnqueueErrors(ports: Ports, settings: Settings): Promise<void> {
  if (!hasUnwritten(ports, settings)) return;
  const errors = counted.get(settings.databaseUrl)?.errors ?? 0;
  counted.set(settings.databaseUrl, { errors: 0, writtenAtMs: ports.clock.nowMs() });
  try {
    await ports.db.run(recordEnqueueErrors(errors));
  } catch (error) {
    add(settings, errors);
    ports.log.warn("enqueue errors not written", { errors, ...describeError(error) });
  }
}

function isEnqueue({ req }: Context<AppEnv>): boolean {
  return req.method === "POST" && (req.path === "/v1/jobs" || req.path === "/v1/jobs/batch");
}

function hasFailed({ res, error }: Context<AppEnv>): boolean {
  return res.status >= 500 || (error instanceof SluiceError && error.code === "queue_full");
}

function hasUnwritten(ports: Ports, settings: Settings): boolean {
  const known = counted.get(settings.databaseUrl);
  return known !== undefined && known.errors > 0 && ports.clock.nowMs() - known.writtenAtMs >= writeEveryMs;
}

function add(settings: Settings, errors: number): void {
  const known = counted.get(settings.databaseUrl) ?? { errors: 0, writtenAtMs: 0 };
  counted.set(settings.databaseUrl, { ...known, errors: known.errors + errors });
}
