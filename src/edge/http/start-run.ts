// Starts a run over dead letters, and takes its first steps after the response. The clock or a cron takes the others.
import type { Context } from "hono";
import { describeError } from "../../core/database-errors.ts";
import type { DeadRun, NewDeadRun } from "../../core/dead-letters.ts";
import * as sql from "../../core/sql/index.ts";
import { advanceRuns } from "../../queue/dead-runs.ts";
import type { AppEnv } from "./app-env.ts";

export async function startRun(context: Context<AppEnv>, run: NewDeadRun): Promise<DeadRun> {
  const { ports } = context.env;
  const started = await ports.db.run(sql.startDeadRun(context.get("caller").actor, run));
  context.executionCtx.waitUntil(
    takeFirstSteps(context).catch((error: unknown) => {
      ports.log.error("a run over dead letters did not go on", describeError(error));
      ports.wakeIn(0);
    }),
  );
  return started;
}

async function takeFirstSteps({ env: { ports, nudge, settings } }: Context<AppEnv>): Promise<void> {
  for (const queue of await advanceRuns(ports, settings.plan)) nudge(queue);
  const { dueMs } = await ports.db.run(sql.nextDue(ports.registry.all()));
  ports.wakeIn(dueMs ?? 0);
}
