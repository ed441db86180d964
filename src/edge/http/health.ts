// GET /health: is the queue able to work. Open to all, so it says what is wrong in a word and nothing else; and it answers
// in two seconds, whatever the database does.
import { Hono } from "hono";
import type { HealthResponse } from "../../contract/operations.ts";
import { checkRounds } from "../../core/policy/health.ts";
import { ping, readAlarms } from "../../core/sql/index.ts";
import { keyTargets } from "../../queue/notify.ts";
import { targetStates } from "../../queue/targets.ts";
import type { AppEnv } from "./app.ts";

const answerWithinMs = 1_500;
const well: readonly string[] = ["ok", "starting"];

export const health = new Hono<AppEnv>();

health.get("/", async (context) => {
  const checks = await checksOf(context.env);
  // A target of alarms that fails is shown, and is no reason to restart or to leave this deployment.
  const { targets: _, ...decisive } = checks;
  const isWell = Object.values(decisive).every((check) => well.includes(check));
  const status = isWell ? "ok" : checks.database === "ok" ? "failing" : "unavailable";
  return context.json({ status, checks } satisfies HealthResponse, isWell ? 200 : 503);
});

/** Each is "ok", "starting", or a word for what is wrong. */
async function checksOf({ queue, settings }: AppEnv["Bindings"]): Promise<HealthResponse["checks"]> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), answerWithinMs);
  const looked = Promise.all([queue.db.run(ping()), queue.db.run(readAlarms())]);
  const found = await Promise.race([looked, late]).catch(() => undefined);
  clearTimeout(timer);
  const [[heartbeats] = [], [alarms] = []] = found ?? [];
  if (!heartbeats || !alarms) return { database: "unavailable" };
  const isCritical = alarms.alarms.some(
    ({ state }) => state.phase === "firing" && state.severity === "critical",
  );
  const targets = targetStates(await keyTargets(settings.alarmTargets), alarms.targets);
  const isFailing = targets.some(({ offSince, failingSince }) => offSince ?? failingSince);
  return {
    database: "ok",
    ...checkRounds(heartbeats),
    alarms: isCritical ? "critical" : "ok",
    targets: isFailing ? "failing" : "ok",
  };
}
