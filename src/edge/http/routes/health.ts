// GET /health: whether the queue works. Everybody may call it, so it names a problem in one word and gives no details. It
// answers within two seconds, whatever the database does.
import type { HealthResponse } from "../../../contract/health.ts";
import { describeError } from "../../../core/database-errors.ts";
import { SluiceError } from "../../../core/errors.ts";
import { checkRounds } from "../../../core/policy/health.ts";
import type { Alarms } from "../../../core/sql/alarms.ts";
import { ping, readAlarms } from "../../../core/sql/index.ts";
import { targetStates } from "../../../queue/alarms/targets.ts";
import { latestRefusal } from "../../neon/refused-writes.ts";
import type { Settings } from "../../settings/env.ts";
import type { AppEnv } from "../app-env.ts";
import { causeText } from "../codec/problem.ts";
import type { Handlers } from "../operation-routes.ts";

const answerWithinMs = 1_500;
const well: readonly string[] = ["ok", "starting"];

export const getHealth: Handlers["getHealth"] = async (context) => {
  const checks = await checksOf(context.env);
  // A target of alarms that fails is shown, and is no reason to restart or to leave this deployment.
  const { targets: _, ...decisive } = checks;
  const isWell = Object.values(decisive).every((check) => well.includes(check));
  const status = isWell ? "ok" : checks.database === "ok" ? "failing" : "unavailable";
  return context.json({ status, checks } satisfies HealthResponse, isWell ? 200 : 503);
};

/** Each is "ok", "starting", or a word for what is wrong. */
async function checksOf({ ports, settings, isolate }: AppEnv["Bindings"]): Promise<HealthResponse["checks"]> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error("no answer in time")), answerWithinMs);
  try {
    const looked = Promise.all([ports.db.run(ping()), ports.db.run(readAlarms())]);
    const [seen, alarms] = await Promise.race([looked, late]);
    return {
      database: seen.isReadOnly ? "read_only" : wordOf(latestRefusal(isolate) ?? "ok"),
      ...checkRounds(seen, { drainSeconds: overdueLimit(settings) }),
      ...alarmChecks(alarms, settings),
    };
  } catch (error) {
    const cause = error as Error;
    ports.log.error("health check failed", { ...describeError(cause), cause: causeText(cause) });
    return { database: wordOf(error instanceof SluiceError ? error.code : "database_unavailable") };
  } finally {
    clearTimeout(timer);
  }
}

function alarmChecks({ alarms, targets }: Alarms, { alarmTargets }: Settings) {
  const isCritical = alarms.some(({ state }) => state.phase === "firing" && state.severity === "critical");
  const states = targetStates(alarmTargets, targets);
  const isFailing = states.some(({ goneSince, failingSince }) => goneSince ?? failingSince);
  return { alarms: isCritical ? "critical" : "ok", targets: isFailing ? "failing" : "ok" };
}

/** The limit of the alarm round_overdue, so that both say the same. */
function overdueLimit({ alarmRules }: Settings): number {
  return alarmRules.find(({ alarm }) => alarm === "round_overdue")?.threshold ?? 0;
}

/** database_read_only: read_only. */
function wordOf(code: string): string {
  return code.replace(/^database_/, "");
}
