// Updates the alarms from a snapshot, and writes the notices about their changes. If another watch round changed an alarm
// since it was read, that change stays and this one is dropped.
import {
  type AlarmRule,
  type AlarmState,
  alarmKey,
  type Notice,
  type Observation,
} from "../../core/alarms/alarm.ts";
import { observe } from "../../core/alarms/alarm-rules.ts";
import { advance } from "../../core/alarms/alarm-state.ts";
import { type Deployment, noticeBody } from "../../core/alarms/notice.ts";
import type { Snapshot } from "../../core/snapshot.ts";
import type { Alarms } from "../../core/sql/alarms.ts";
import { changeAlarms } from "../../core/sql/index.ts";
import type { Ports } from "../ports.ts";
import type { KeyedTarget } from "./notify.ts";
import { targetStates } from "./targets.ts";

export interface AlarmUpdate {
  snapshot: Snapshot;
  storedAlarms: Alarms;
  rules: readonly AlarmRule[];
  targets: readonly KeyedTarget[];
  deployment: Deployment;
  /** How long ago the database was last left alone on purpose. Null: never. */
  sleptMsAgo: number | null;
}

interface Change {
  state: AlarmState;
  version: number | undefined;
  notice: Notice | null;
}

/** Returns the notices that were written. */
export async function updateAlarms(ports: Ports, update: AlarmUpdate): Promise<Notice[]> {
  const changes = findChanges(update);
  if (changes.length === 0) return [];
  const rows = changes.map(({ notice, ...change }) => ({
    ...change,
    notice: notice && noticeBody(notice, update.deployment),
  }));
  const applied = await ports.db.run(changeAlarms(rows, update.targets));
  const keys = new Set(applied.map(alarmKey));
  const notices = changes.flatMap(({ state, notice }) =>
    notice && keys.has(alarmKey(state)) ? [notice] : [],
  );
  for (const { kind, at: _, ...fields } of notices) {
    if (kind === "firing") ports.log.error("alarm firing", fields);
    else ports.log.info("alarm resolved", fields);
  }
  return notices;
}

function findChanges({ snapshot, storedAlarms, rules, targets, sleptMsAgo }: AlarmUpdate): Change[] {
  const observations = new Map(
    observe({ snapshot, targets: targetStates(targets, storedAlarms.targets) }, rules).map((observation) => [
      alarmKey(observation),
      observation,
    ]),
  );
  const alarms = new Map(storedAlarms.alarms.map((alarm) => [alarmKey(alarm.state), alarm]));
  return [...new Set([...alarms.keys(), ...observations.keys()])].flatMap((key) => {
    const alarm = alarms.get(key);
    const observation = observations.get(key);
    if (isSilenceOnPurpose(observation, sleptMsAgo)) return [];
    const silencedUntil = findSilence(storedAlarms, (observation ?? alarm?.state)?.alarm, observation?.rule);
    const step = advance(alarm?.state, observation, { at: snapshot.at, silencedUntil });
    const isChanged = step && (step.notice || JSON.stringify(step.state) !== JSON.stringify(alarm?.state));
    return isChanged ? [{ ...step, version: alarm?.version }] : [];
  });
}

/**
 * Nothing happens while the database sleeps. An alarm about that stays as it is until its time is over after the sleep. A job that
 * came back by a retry counts as waiting since the watch round before, which may have been before the sleep.
 */
function isSilenceOnPurpose(observation: Observation | undefined, sleptMsAgo: number | null): boolean {
  if (!observation || sleptMsAgo === null) return false;
  const { alarm, rule, threshold } = observation;
  if (alarm === "completion_rate_low") return sleptMsAgo < rule.windowMinutes * 60_000;
  if (alarm === "oldest_pending_high") return sleptMsAgo < threshold * 1000;
  return alarm === "round_overdue" && sleptMsAgo < 2 * rule.threshold * 1000;
}

/** The end of the rule's own silence or of the one that an admin has set, whichever is later. */
function findSilence(
  storedAlarms: Alarms,
  name: string | undefined,
  rule: AlarmRule | undefined,
): Date | null {
  const adminUntil = storedAlarms.silences.find(({ alarm }) => alarm === name)?.until ?? null;
  const ruleUntil = rule?.silencedUntil ?? null;
  return adminUntil && ruleUntil
    ? adminUntil > ruleUntil
      ? adminUntil
      : ruleUntil
    : (adminUntil ?? ruleUntil);
}
