// POST /internal/drains/:queue: one drain in an invocation of its own. POST /internal/wake: a look at the database, for the
// clock. Only the Worker itself can call them, by its binding to itself and with a signature. No API key is accepted.
import type { Context } from "hono";
import { SluiceError } from "../../../core/errors.ts";
import { cronBudget } from "../../../core/policy/drain-budget.ts";
import { defaultFanOut } from "../../../core/policy/fan-out.ts";
import { drainAndRecord } from "../../../queue/rounds.ts";
import { wake } from "../../../queue/wake.ts";
import { deliveriesAtOnce } from "../../../queue/watch.ts";
import { isSignedDrain, wakeName } from "../../drain-call.ts";
import type { AppEnv } from "../app-env.ts";

export const startDrain = async (context: Context<AppEnv>) => {
  const { ports, settings } = context.env;
  const queue = context.req.param("queue") ?? "";
  await requireSignature(context, queue);
  return context.json(
    await drainAndRecord(ports, { kind: "drain", queue, budget: cronBudget(settings.plan) }),
  );
};

export const wakeUp = async (context: Context<AppEnv>) => {
  const { ports, sender, settings } = context.env;
  const { plan, maxDrains, alarmTargets: targets } = settings;
  await requireSignature(context, wakeName);
  const fanOut = { ...defaultFanOut, maxDrains };
  const upkeep = context.req.query("upkeep") === "true";
  const notices = { targets, sender, batch: deliveriesAtOnce[plan] };
  return context.json(await wake(ports, { plan, fanOut, upkeep, notices }));
};

async function requireSignature(context: Context<AppEnv>, queue: string): Promise<void> {
  const { ports, settings } = context.env;
  const authorization = context.req.header("authorization") ?? "";
  const call = { queue, nowMs: ports.clock.nowMs(), authorization };
  if (!(await isSignedDrain(settings.adminKeys, call)))
    throw new SluiceError("unauthorized", "only the Worker itself may start drains here");
}
