// raise and clear: what a round saw becomes changes of alarms, and notices of them. Another watcher may have been
// faster; what it changed is left as it made it.
import type { AlarmKey, AlarmRule, AlarmState, Notice } from "../../core/alarms/alarm.ts";
import { observe } from "../../core/alarms/alarm-rules.ts";
import { advance } from "../../core/alarms/alarm-state.ts";
import { type Deployment, noticeBody } from "../../core/alarms/notice.ts";
import type { Snapshot } from "../../core/snapshot.ts";
import type { Alarms } from "../../core/sql/alarms.ts";
import { changeAlarms } from "../../core/sql/index.ts";
import type { Ports } from "../ports.ts";
import type { KeyedTarget } from "./notify.ts";
import { targetStates } from "./targets.ts";

export interface Raising {
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

/** Returns the notices that are on their way by that. */
export async function raise(ports: Ports, raising: Raising): Promise<Notice[]> {
  const changes = changesOf(raising);
  if (changes.length === 0) return [];
  const rows = changes.map(({ notice, ...change }) => ({
    ...change,
    notice: notice && noticeBody(notice, raising.deployment),
  }));
  const applied = await ports.db.run(changeAlarms(rows, raising.targets));
  const keys = new Set(applied.map(keyOf));
  const notices = changes.flatMap(({ state, notice }) => (notice && keys.has(keyOf(state)) ? [notice] : []));
  for (const { kind, at: _, ...fields } of notices) {
    if (kind === "firing") ports.log.error("alarm firing", fields);
    else ports.log.info("alarm resolved", fields);
  }
  return notices;
}

function changesOf({ seen, known, rules, targets }: Raising): Change[] {
  const observations = new Map(
    observe({ snapshot: seen, targets: targetStates(targets, known.targets) }, rules).map((observation) => [
      keyOf(observation),
      observation,
    ]),
  );
  const alarms = new Map(known.alarms.map((alarm) => [keyOf(alarm.state), alarm]));
  return [...new Set([...alarms.keys(), ...observations.keys()])].flatMap((key) => {
    const alarm = alarms.get(key);
    const observation = observations.get(key);
    const silencedUntil = silenceOf(known, observation?.rule, key);
    const step = advance(alarm?.state, observation, { at: seen.at, silencedUntil });
    const isNews = step && (step.notice || JSON.stringify(step.state) !== JSON.stringify(alarm?.state));
    return isNews ? [{ ...step, version: alarm?.version }] : [];
  });
}

/** The later of the rule's own and the one that somebody set by hand. */
function silenceOf(known: Alarms, rule: AlarmRule | undefined, key: string): Date | null {
  const byHand = known.silences.find(({ alarm }) => key.startsWith(`${alarm}/`))?.until ?? null;
  const byRule = rule?.silencedUntil ?? null;
  return byHand && byRule ? (byHand > byRule ? byHand : byRule) : (byHand ?? byRule);
}

function keyOf({ alarm, queue, jobType }: AlarmKey): string {
  return `${alarm}/${queue ?? ""}/${jobType ?? ""}`;
}
