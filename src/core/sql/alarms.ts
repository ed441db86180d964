// read alarms, change alarms, silence alarm. See migrations/functions/alarms.sql.
import { sql } from "drizzle-orm";
import {
  type AlarmKey,
  type AlarmName,
  type AlarmState,
  alarmKey,
  type Severity,
  type TargetHealth,
} from "../alarms/alarm.ts";
import { many, one, type Statement } from "./statement.ts";

/** An alarm as it was read: a change applies to this version alone. */
export interface KnownAlarm {
  state: AlarmState;
  version: number;
}

export interface KnownTarget extends TargetHealth {
  /** Null: nothing was ever sent to it. */
  urlHash: string | null;
  deliveredAt: Date | null;
  /** Of its last answer. */
  status: number | null;
  error: string | null;
  pending: number;
}

export interface Alarms {
  alarms: KnownAlarm[];
  targets: KnownTarget[];
  silences: { alarm: string; until: Date }[];
}

export function readAlarms(): Statement<Alarms> {
  return {
    name: "read alarms",
    isRepeatable: true,
    build: (schema) => sql`select alarms, targets, silences from ${schema}.read_alarms()`,
    decode: one((row) => ({
      alarms: rowsOf(row.alarms).map((alarm) => ({ state: stateOf(alarm), version: Number(alarm.version) })),
      targets: rowsOf(row.targets).map(targetOf),
      silences: rowsOf(row.silences).map((silence) => ({
        alarm: String(silence.alarm),
        until: new Date(String(silence.until)),
      })),
    })),
  };
}

export interface AlarmChange {
  state: AlarmState;
  /** Undefined: there was none. */
  version: number | undefined;
  /** The notice to every target; null: none. */
  notice: object | null;
}

export interface TargetKey {
  name: string;
  urlHash: string;
}

/** The keys of those that applied: the others were changed by somebody else since they were read. */
export function changeAlarms(
  changes: readonly AlarmChange[],
  targets: readonly TargetKey[],
): Statement<AlarmKey[]> {
  return {
    name: "change alarms",
    isRepeatable: true, // the second time the versions are no longer those
    build: (schema) => sql`
      select alarm, queue, job_type
      from ${schema}.change_alarms(
        ${JSON.stringify(changes.map(rowOf))}::jsonb,
        ${JSON.stringify(targets.map(({ name, urlHash }) => ({ name, url_hash: urlHash })))}::jsonb
      )`,
    decode: many((row) => ({
      alarm: row.alarm as AlarmName,
      queue: row.queue as string | null,
      jobType: row.job_type as string | null,
    })),
  };
}

export function silenceAlarm(
  actor: string,
  { alarm, until }: { alarm: AlarmName; until: Date },
): Statement<void> {
  return {
    name: "silence alarm",
    isRepeatable: false, // it would be audited twice
    build: (schema) => sql`
      select ${schema}.silence_alarm(${actor}::text, ${alarm}::text, ${until.toISOString()}::timestamptz)`,
    decode: () => undefined,
  };
}

/** Who sent a test notice to whom, and how that went. */
export function auditTestNotice(actor: string, results: readonly object[]): Statement<void> {
  return {
    name: "audit test notice",
    isRepeatable: false,
    build: (schema) => sql`
      select ${schema}.audit_test_notice(${actor}::text, ${JSON.stringify(results)}::jsonb)`,
    decode: () => undefined,
  };
}

type JsonRow = Record<string, unknown>;

function rowsOf(value: unknown): JsonRow[] {
  return (value ?? []) as JsonRow[];
}

function stateOf(row: JsonRow): AlarmState {
  return {
    alarm: row.alarm as AlarmName,
    queue: row.queue as string | null,
    jobType: row.job_type as string | null,
    phase: row.phase as AlarmState["phase"],
    since: new Date(String(row.since)),
    changedAt: new Date(String(row.changed_at)),
    recent: row.recent as boolean[],
    clearRounds: Number(row.clear_rounds),
    notified: row.notified as AlarmState["notified"],
    notifiedAt: dateOf(row.notified_at),
    severity: row.severity as Severity,
    value: row.value as number | null,
    threshold: Number(row.threshold),
    summary: String(row.summary),
  };
}

function targetOf(row: JsonRow): KnownTarget {
  return {
    name: String(row.name),
    urlHash: row.url_hash as string | null,
    goneSince: dateOf(row.gone_since),
    failingSince: dateOf(row.failing_since),
    deliveredAt: dateOf(row.delivered_at),
    status: row.status as number | null,
    error: row.error as string | null,
    pending: Number(row.pending),
  };
}

function rowOf({ state, version, notice }: AlarmChange): JsonRow {
  const { jobType, changedAt, clearRounds, notifiedAt, ...rest } = state;
  return {
    ...rest,
    job_type: jobType,
    changed_at: changedAt,
    clear_rounds: clearRounds,
    notified_at: notifiedAt,
    version: version ?? null,
    about: alarmKey(state),
    notice,
  };
}

function dateOf(value: unknown): Date | null {
  return value ? new Date(String(value)) : null;
}
