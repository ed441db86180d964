// Counts enqueues that failed with a 5xx or because the queue was full. Each isolate has its own count. Its next enqueue or
// round that reaches the database writes it. An isolate that ends before that loses its count. Only an alarm uses it.
import type { Context, MiddlewareHandler } from "hono";
import { describeError } from "../../../core/database-errors.ts";
import { SluiceError } from "../../../core/errors.ts";
import { recordEnqueueErrors } from "../../../core/sql/index.ts";
import type { AppEnv } from "../app-env.ts";

/** The count is written at most once in this time, however many enqueues fail. */
const writeEveryMs = 5_000;

type Invocation = Pick<AppEnv["Bindings"], "ports" | "isolate">;

export const countEnqueueErrors: MiddlewareHandler<AppEnv> = async (context, next) => {
  await next();
  if (hasFailed(context)) context.env.isolate.enqueueErrors.unwritten++;
  if (context.res.status < 500) context.executionCtx.waitUntil(writeEnqueueErrors(context.env));
};

export async function writeEnqueueErrors({ ports, isolate }: Invocation): Promise<void> {
  const { unwritten, writtenAtMs } = isolate.enqueueErrors;
  const nowMs = ports.clock.nowMs();
  if (unwritten === 0 || nowMs - writtenAtMs < writeEveryMs) return;
  isolate.enqueueErrors = { unwritten: 0, writtenAtMs: nowMs };
  try {
    await ports.db.run(recordEnqueueErrors(unwritten));
  } catch (error) {
    isolate.enqueueErrors.unwritten += unwritten;
    ports.log.warn("enqueue errors not written", { errors: unwritten, ...describeError(error) });
  }
}

function hasFailed({ res, error }: Context<AppEnv>): boolean {
  return res.status >= 500 || (error instanceof SluiceError && error.code === "queue_full");
}
