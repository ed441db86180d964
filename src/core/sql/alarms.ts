// read alarms, change alarms, silence alarm, list alarm events. See migrations/functions/alarms.sql.
import {
  type AlarmKey,
  type AlarmName,
  type AlarmState,
  alarmKey,
  type TargetHealth,
} from "../alarms/alarm.ts";
import type { RowOf } from "./column.ts";
import { decodeColumns, listColumns } from "./columns.ts";
import { alarm, alarmEvent, alarmSilence, alarmTarget } from "./schema.ts";
import { sql } from "./sql.ts";
import { many, one, type Row, type Statement } from "./statement.ts";

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
  silences: RowOf<typeof alarmSilence>[];
}

const keyColumns = { alarm: alarm.alarm, queue: alarm.queue, jobType: alarm.jobType };
const decodeAlarm = decodeColumns(alarm);
const decodeTarget = decodeColumns(alarmTarget);
const decodeSilence = decodeColumns(alarmSilence);

export function readAlarms(): Statement<Alarms> {
  return {
    name: "read alarms",
    isRepeatable: true,
    build: (schema) => sql`select alarms, targets, silences from ${schema}.read_alarms()`,
    decode: one((row) => ({
      alarms: toRows(row.alarms).map((stored) => {
        const { version, ...state } = decodeAlarm(stored);
        return { state, version };
      }),
      // A target that nothing was ever sent to has only its name and what is pending.
      targets: toRows(row.targets).map((target) => ({
        ...decodeTarget(target),
        pending: Number(target.pending),
      })),
      silences: toRows(row.silences).map(decodeSilence),
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
      select ${listColumns(keyColumns)}
      from ${schema}.change_alarms(
        ${JSON.stringify(changes.map(encodeChange))}::jsonb,
        ${JSON.stringify(targets.map(({ name, urlHash }) => ({ name, url_hash: urlHash })))}::jsonb
      )`,
    decode: many(decodeColumns(keyColumns)),
  };
}

export function silenceAlarm(
  actor: string,
  { alarm, until, reason = null }: { alarm: AlarmName; until: Date; reason?: string | null },
): Statement<void> {
  return {
    name: "silence alarm",
    isRepeatable: false, // it would be audited twice
    build: (schema) => sql`
      select ${schema}.silence_alarm(
        ${actor}::text, ${alarm}::text, ${until.toISOString()}::timestamptz, ${reason}::text)`,
    decode: () => undefined,
  };
}

export type AlarmEvent = RowOf<typeof alarmEvent>;

/** Newest first. `before` is the last id of the previous page. */
export function listAlarmEvents(page: {
  before?: string | undefined;
  limit: number;
}): Statement<AlarmEvent[]> {
  return {
    name: "list alarm events",
    isRepeatable: true,
    build: (schema) => sql`
      select ${listColumns(alarmEvent)}
      from ${schema}.list_alarm_events(${page.before ?? null}::bigint, ${page.limit}::int)`,
    decode: many(decodeColumns(alarmEvent)),
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

function toRows(value: unknown): Row[] {
  return (value ?? []) as Row[];
}

function encodeChange({ state, version, notice }: AlarmChange): Row {
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
