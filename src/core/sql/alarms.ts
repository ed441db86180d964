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

/** An alarm as it was read. A change applies only to this version. */
export interface StoredAlarm {
  state: AlarmState;
  version: number;
}

export interface StoredTarget extends TargetHealth {
  /** Null if nothing was ever sent to the target. */
  urlHash: string | null;
  deliveredAt: Date | null;
  /** The status of its last answer. */
  status: number | null;
  error: string | null;
  pending: number;
}

export interface Alarms {
  alarms: StoredAlarm[];
  targets: StoredTarget[];
  silences: { alarm: string; until: Date }[];
}

export function readAlarms(): Statement<Alarms> {
  return {
    name: "read alarms",
    isRepeatable: true,
    build: (schema) => sql`select alarms, targets, silences from ${schema}.read_alarms()`,
    decode: one((row) => ({
      alarms: toRows(row.alarms).map((alarm) => ({
        state: decodeState(alarm),
        version: Number(alarm.version),
      })),
      targets: toRows(row.targets).map(decodeTarget),
      silences: toRows(row.silences).map((silence) => ({
        alarm: String(silence.alarm),
        until: new Date(String(silence.until)),
      })),
    })),
  };
}

export interface AlarmChange {
  state: AlarmState;
  /** Undefined if the alarm is new. */
  version: number | undefined;
  /** The notice to every target. Null if there is none. */
  notice: object | null;
}

export interface TargetKey {
  name: string;
  urlHash: string;
}

/** Answers the keys of the changes that applied. The other alarms were changed by somebody else since they were read. */
export function changeAlarms(
  changes: readonly AlarmChange[],
  targets: readonly TargetKey[],
): Statement<AlarmKey[]> {
  return {
    name: "change alarms",
    isRepeatable: true, // the versions no longer match the second time
    build: (schema) => sql`
      select alarm, queue, job_type
      from ${schema}.change_alarms(
        ${JSON.stringify(changes.map(encodeChange))}::jsonb,
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

/** Records who sent a test notice, and what the targets answered. */
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

function toRows(value: unknown): JsonRow[] {
  return (value ?? []) as JsonRow[];
}

function decodeState(row: JsonRow): AlarmState {
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
    notifiedAt: decodeDate(row.notified_at),
    severity: row.severity as Severity,
    value: row.value as number | null,
    threshold: Number(row.threshold),
    summary: String(row.summary),
  };
}

function decodeTarget(row: JsonRow): StoredTarget {
  return {
    name: String(row.name),
    urlHash: row.url_hash as string | null,
    goneSince: decodeDate(row.gone_since),
    failingSince: decodeDate(row.failing_since),
    deliveredAt: decodeDate(row.delivered_at),
    status: row.status as number | null,
    error: row.error as string | null,
    pending: Number(row.pending),
  };
}

function encodeChange({ state, version, notice }: AlarmChange): JsonRow {
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

function decodeDate(value: unknown): Date | null {
  return value ? new Date(String(value)) : null;
}
