// POST /internal/drains/:queue: one drain in an invocation of its own. The cron round calls it through the Worker's
// binding to itself, with the admin key; nobody else needs to.
import { Hono } from "hono";
import { cronBudget } from "../../core/policy/drain-budget.ts";
import { drainRound } from "../../queue/rounds.ts";
import type { AppEnv } from "./app.ts";
import { requireRole } from "./auth.ts";

export const drains = new Hono<AppEnv>();
drains.use(requireRole("admin"));

drains.post("/:queue", async (context) => {
  const { queue, settings } = context.env;
  const name = context.req.param("queue");
  return context.json(await drainRound(queue, { kind: "drain", name, budget: cronBudget(settings.plan) }));
});
