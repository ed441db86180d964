// POST /internal/drains/:queue: one drain in an invocation of its own. Only the Worker itself can call it, by its binding
// to itself and with a signature. No API key is accepted.
import type { Context } from "hono";
import { SluiceError } from "../../../core/errors.ts";
import { cronBudget } from "../../../core/policy/drain-budget.ts";
import { drainAndRecord } from "../../../queue/rounds.ts";
import { isSignedDrain } from "../../drain-call.ts";
import type { AppEnv } from "../app-env.ts";

export const startDrain = async (context: Context<AppEnv>) => {
  const { ports, settings } = context.env;
  const queue = context.req.param("queue") ?? "";
  const authorization = context.req.header("authorization") ?? "";
  const call = { queue, nowMs: ports.clock.nowMs(), authorization };
  if (!(await isSignedDrain(settings.adminKeys, call)))
    throw new SluiceError("unauthorized", "only the Worker itself may start drains here");
  return context.json(
    await drainAndRecord(ports, { kind: "drain", queue, budget: cronBudget(settings.plan) }),
  );
};
