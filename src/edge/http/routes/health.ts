// GET /health: whether the queue works. It needs no key, so it names a problem in one word and gives no details. It answers
// within two seconds, whatever the database does.
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
const healthyWords: readonly string[] = ["ok", "starting"];

export const getHealth: Handlers["getHealth"] = async (context) => {
  const checks = await runChecks(context.env);
  // A failing alarm target is shown, but it does not make the deployment unhealthy.
  const { targets: _, ...decisiveChecks } = checks;
  const isHealthy = Object.values(decisiveChecks).every((check) => healthyWords.includes(check));
  const status = isHealthy ? "ok" : checks.database === "ok" ? "failing" : "unavailable";
  return context.json({ status, checks } satisfies HealthResponse, isHealthy ? 200 : 503);
};

/** Each check is "ok", "starting", or a word for the problem. */
async function runChecks({
  ports,
  settings,
  isolate,
}: AppEnv["Bindings"]): Promise<HealthResponse["checks"]> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error("no answer in time")), answerWithinMs);
  try {
    const reads = Promise.all([ports.db.run(ping()), ports.db.run(readAlarms())]);
    const [pinged, alarms] = await Promise.race([reads, late]);
    return {
      database: pinged.isReadOnly ? "read_only" : shortenCode(latestRefusal(isolate) ?? "ok"),
      ...checkRounds(pinged, { drainSeconds: overdueLimit(settings) }),
      ...alarmChecks(alarms, settings),
    };
  } catch (error) {
    const cause = error as Error;
    ports.log.error("health check failed", { ...describeError(cause), cause: causeText(cause) });
    return { database: shortenCode(error instanceof SluiceError ? error.code : "database_unavailable") };
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

/** The limit of the alarm round_overdue, so that both agree. */
function overdueLimit({ alarmRules }: Settings): number {
  return alarmRules.find(({ alarm }) => alarm === "round_overdue")?.threshold ?? 0;
}

/** Turns database_read_only into read_only. */
function shortenCode(code: string): string {
  return code.replace(/^database_/, "");
}
