// Updates the alarms by what a round saw, and writes the notices about their changes. If another watcher changed an alarm
// since it was read, that change stays and this one is dropped.
import { type AlarmRule, type AlarmState, alarmKey, type Notice } from "../../core/alarms/alarm.ts";
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
  seen: Snapshot;
  known: Alarms;
  rules: readonly AlarmRule[];
  targets: readonly KeyedTarget[];
  deployment: Deployment;
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

function findChanges({ seen, known, rules, targets }: AlarmUpdate): Change[] {
  const observations = new Map(
    observe({ snapshot: seen, targets: targetStates(targets, known.targets) }, rules).map((observation) => [
      alarmKey(observation),
      observation,
    ]),
  );
  const alarms = new Map(known.alarms.map((alarm) => [alarmKey(alarm.state), alarm]));
  return [...new Set([...alarms.keys(), ...observations.keys()])].flatMap((key) => {
    const alarm = alarms.get(key);
    const observation = observations.get(key);
    const silencedUntil = findSilence(known, (observation ?? alarm?.state)?.alarm, observation?.rule);
    const step = advance(alarm?.state, observation, { at: seen.at, silencedUntil });
    const isNews = step && (step.notice || JSON.stringify(step.state) !== JSON.stringify(alarm?.state));
    return isNews ? [{ ...step, version: alarm?.version }] : [];
  });
}

/** The later one of the rule's own silence and the one that an admin has set. */
function findSilence(known: Alarms, name: string | undefined, rule: AlarmRule | undefined): Date | null {
  const byHand = known.silences.find(({ alarm }) => alarm === name)?.until ?? null;
  const byRule = rule?.silencedUntil ?? null;
  return byHand && byRule ? (byHand > byRule ? byHand : byRule) : (byHand ?? byRule);
}
