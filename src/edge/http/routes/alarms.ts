// Alarm routes: list alarms, rules, silences and targets; send a test notice; silence an alarm.
import type { Context } from "hono";
import type { AlarmsResponse, TestNoticeResponse } from "../../../contract/alarms.ts";
import type { AlarmRule, AlarmState } from "../../../core/alarms/alarm.ts";
import { alarmLink, type Deployment, noticeBody, runbookLink } from "../../../core/alarms/notice.ts";
import { SluiceError } from "../../../core/errors.ts";
import type { Alarms } from "../../../core/sql/alarms.ts";
import * as sql from "../../../core/sql/index.ts";
import { type KeyedTarget, notify } from "../../../queue/alarms/notify.ts";
import { type TargetState, targetStates } from "../../../queue/alarms/targets.ts";
import type { AppEnv } from "../app-env.ts";
import type { Handlers } from "../operation-routes.ts";

export const listAlarms: Handlers["listAlarms"] = async (context) => {
  const { ports, settings } = context.env;
  const stored = await ports.db.run(sql.readAlarms());
  const targets = targetStates(settings.alarmTargets, stored.targets);
  const body: AlarmsResponse = {
    alarms: stored.alarms.map(({ state }) => ({
      ...alarmResponse(state, settings.deployment),
      silenced_until: silencedUntil(stored.silences, state.alarm),
    })),
    rules: settings.alarmRules.map(ruleResponse),
    silences: stored.silences.map((silence) => ({ ...silence, until: silence.until.toISOString() })),
    targets: targets.map(targetResponse),
  };
  return context.json(body);
};

/** Answers with the results of the targets, and stores their health. */
export const sendTestNotice: Handlers["sendTestNotice"] = async (
  context,
  { body: { target: targetName } },
) => {
  const { ports, settings } = context.env;
  const targets = settings.alarmTargets.filter(({ name }) => !targetName || name === targetName);
  if (targetName && targets.length === 0)
    throw new SluiceError("not_found", `there is no alarm target "${targetName}"`);
  const results = await Promise.all(targets.map((target) => sendTest(context, target)));
  await ports.db.run(sql.settleDeliveries(results.map(({ settled }) => settled)));
  const body: TestNoticeResponse = { targets: results.map(({ answer }) => answer) };
  await ports.db.run(sql.auditTestNotice(context.get("caller").actor, body.targets));
  return context.json(body);
};

export const silenceAlarm: Handlers["silenceAlarm"] = async (context, { body }) => {
  const { alarm, until, reason = null } = body;
  const silence = { alarm, until: new Date(until), reason };
  await context.env.ports.db.run(sql.silenceAlarm(context.get("caller").actor, silence));
  return context.json({ alarm, until: silence.until.toISOString() });
};

async function sendTest(context: Context<AppEnv>, target: KeyedTarget) {
  const { ports, sender, settings } = context.env;
  const startedMs = ports.clock.nowMs();
  const at = new Date(startedMs);
  const summary = `a test notice for the target ${target.name}: nothing is wrong`;
  const about = {
    alarm: "test",
    queue: null,
    jobType: null,
    severity: "info",
    value: null,
    threshold: null,
  } as const;
  const notice = noticeBody({ ...about, kind: "test", at, since: at, summary }, settings.deployment);
  const { outcome, status, error } = await notify(ports, target, { id: crypto.randomUUID(), notice, sender });
  const { name, urlHash } = target;
  return {
    settled: { delivery: null, target: name, urlHash, outcome, status, error, retryInSeconds: null },
    answer: {
      ...{ target: name, delivered: outcome === "delivered", status, error },
      ms: ports.clock.nowMs() - startedMs,
    },
  };
}

function silencedUntil(silences: Alarms["silences"], name: string): string | null {
  return silences.find(({ alarm }) => alarm === name)?.until.toISOString() ?? null;
}

function alarmResponse(
  state: AlarmState,
  deployment: Deployment,
): Omit<AlarmsResponse["alarms"][number], "silenced_until"> {
  const { alarm, queue, jobType, phase, severity, value, threshold, since, changedAt, summary } = state;
  return {
    ...{ alarm, queue, job_type: jobType, state: phase, severity, value, threshold, summary },
    since: since.toISOString(),
    changed_at: changedAt.toISOString(),
    link: alarmLink(state, deployment),
    runbook: runbookLink(state, deployment),
  };
}

function ruleResponse(rule: AlarmRule): AlarmsResponse["rules"][number] {
  return {
    ...{ alarm: rule.alarm, queue: rule.queue, job_type: rule.jobType, enabled: rule.isEnabled },
    threshold: rule.threshold,
    window_minutes: rule.windowMinutes,
    for_rounds: rule.forRounds,
    of_rounds: rule.ofRounds,
    clear_rounds: rule.clearRounds,
    severity: rule.severity,
    repeat_minutes: rule.repeatMinutes,
    silenced_until: rule.silencedUntil?.toISOString() ?? null,
  };
}

function targetResponse(target: TargetState): AlarmsResponse["targets"][number] {
  return {
    name: target.name,
    format: target.format,
    state: target.goneSince ? "off" : target.failingSince ? "failing" : "ok",
    off_since: target.goneSince?.toISOString() ?? null,
    failing_since: target.failingSince?.toISOString() ?? null,
    delivered_at: target.deliveredAt?.toISOString() ?? null,
    status: target.status,
    error: target.error,
    pending_deliveries: target.pending,
  };
}
