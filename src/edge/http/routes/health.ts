// GET /health: whether the queue works. It needs no key, so it names a problem in one word and gives no details. It answers
// within two seconds, whatever the database does. It does not wake a database that sleeps on purpose.
import type { ClockCheck, HealthResponse } from "../../../contract/health.ts";
import { describeError } from "../../../core/database-errors.ts";
import { SluiceError } from "../../../core/errors.ts";
import { isOverdue, sleptMsAgo } from "../../../core/policy/clock.ts";
import { checkRounds } from "../../../core/policy/health.ts";
import type { Alarms } from "../../../core/sql/alarms.ts";
import { ping, readAlarms } from "../../../core/sql/index.ts";
import { targetStates } from "../../../queue/alarms/targets.ts";
import type { ClockReading } from "../../clock/clock-binding.ts";
import { latestRefusal } from "../../database/refused-writes.ts";
import type { Settings } from "../../settings/env.ts";
import type { AppEnv } from "../app-env.ts";
import { causeText } from "../codec/problem.ts";
import type { Handlers } from "../operation-routes.ts";

const answerWithinMs = 1_500;
const healthyWords: readonly string[] = ["ok", "starting", "asleep"];

export const getHealth: Handlers["getHealth"] = async (context) => {
  const reading = await context.env.alarmClock.read();
  const asleep = typeof reading === "object" && reading?.isAsleep ? reading : null;
  const others = asleep ? sleepChecks(asleep, context.env.settings) : await runChecks(context.env, reading);
  const clock = clockCheck(reading);
  // A failing alarm target is shown, but it does not make the deployment unhealthy. Without its clock it works by cron.
  const { targets: _, ...decisiveChecks } = others;
  const isHealthy =
    Object.values(decisiveChecks).every((check) => healthyWords.includes(check)) &&
    clock?.status !== "overdue";
  const status = isHealthy ? "ok" : healthyWords.includes(others.database ?? "") ? "failing" : "unavailable";
  const checks = { ...others, ...(clock && { clock }) } as HealthResponse["checks"];
  return context.json({ status, checks } satisfies HealthResponse, isHealthy ? 200 : 503);
};

type Words = Record<string, string>;

function clockCheck(reading: ClockReading | "unreachable" | null): ClockCheck | null {
  if (reading === null) return null;
  if (reading === "unreachable") return { status: "unreachable", asleep: false, next_due_at: null };
  const { state, isAsleep, nowMs } = reading;
  return {
    status: isOverdue(state, nowMs) ? "overdue" : "ok",
    asleep: isAsleep,
    next_due_at: state.dueAtMs === null ? null : new Date(state.dueAtMs).toISOString(),
  };
}

/** While the database sleeps, the crons ask the clock every minute. If they stop, this shows it. */
function sleepChecks({ state, nowMs }: ClockReading, settings: Settings): Words {
  const askedMs = Math.max(state.sleptAtMs ?? 0, state.idleSinceMs ?? 0);
  const isLate = nowMs - askedMs > overdueLimit(settings) * 1000;
  return { database: "asleep", drain: isLate ? "overdue" : "asleep" };
}

/** Each check is "ok", "starting", or a word for the problem. */
async function runChecks(
  { ports, settings, isolate }: AppEnv["Bindings"],
  reading: ClockReading | "unreachable" | null,
): Promise<Words> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error("no answer in time")), answerWithinMs);
  const msAgo = typeof reading === "object" && reading ? sleptMsAgo(reading.state, reading.nowMs) : null;
  try {
    const reads = Promise.all([ports.db.run(ping()), ports.db.run(readAlarms())]);
    const [pinged, alarms] = await Promise.race([reads, late]);
    return {
      database: pinged.isReadOnly ? "read_only" : shortenCode(latestRefusal(isolate) ?? "ok"),
      ...checkRounds(pinged, { drainSeconds: overdueLimit(settings), sleptMsAgo: msAgo }),
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
