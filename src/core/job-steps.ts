// The durable steps of a job for people: from when to when each ran, slept or waited. A wait and `step.all` store a row when they
// begin and another when they end. Here they are one step.
import type { Json } from "./job.ts";

export const stepKinds = ["run", "sleep", "wait", "all"] as const;
export type StepKind = (typeof stepKinds)[number];

export interface JobStep {
  /** As it is stored: `charge`, `sleep:night`, `wait:paid:order 7`, `all:render`. The second of a name ends with `#2`. */
  name: string;
  kind: StepKind;
  /** Null: not known. */
  startedAt: Date | null;
  /** Of a sleep: when it is over, also in the future. Null if it still waits, or if `startedAt` is null too: not known. */
  endedAt: Date | null;
  /** Left out if it is too large, or while the step waits. */
  value?: Json;
}

/** A row of step_list (migrations/functions/checkpoint.sql). */
export interface StepRow {
  name: string;
  value?: Json;
  /** In milliseconds since 1970. Null in old rows. */
  stored_at: number | null;
  /** Below 0: a sleep. Null: not known. */
  took_ms: number | null;
}

/** In the order in which they began. Those whose time is not known come first. */
export function toJobSteps(rows: readonly StepRow[]): JobStep[] {
  const begun = new Map(rows.filter(isBeginning).map((row) => [endNameOf(row), row]));
  const ended = rows.filter((row) => !isBeginning(row));
  const names = new Set(ended.map(({ name }) => name));
  const waiting = [...begun].filter(([name]) => !names.has(name));
  const steps = [
    ...ended.map((row) => toStep(row, begun.get(row.name) ?? row)),
    ...waiting.map(([name, row]) => ({ name, kind: kindOf(name), startedAt: startOf(row), endedAt: null })),
  ];
  return steps.sort((a, b) => orderOf(a) - orderOf(b));
}

/** The end of a wait has no `took_ms`. So a signal's key may end with these words. */
function isBeginning({ name, took_ms }: StepRow): boolean {
  return took_ms !== null && /^(wait:.*:until|all:.*:jobs)$/s.test(name);
}

const endNameOf = ({ name }: StepRow) => name.slice(0, name.lastIndexOf(":"));

function toStep(row: StepRow, beginning: StepRow): JobStep {
  const { name, value, took_ms: tookMs } = row;
  const kind = tookMs === null ? kindOf(name) : tookMs < 0 ? "sleep" : "run";
  const startedAt = startOf(beginning);
  return { name, kind, startedAt, endedAt: endOf(row, kind), ...(value !== undefined && { value }) };
}

function kindOf(name: string): StepKind {
  const prefix = name.slice(0, name.indexOf(":"));
  return stepKinds.find((kind) => kind === prefix) ?? "run";
}

function startOf({ stored_at, took_ms }: StepRow): Date | null {
  return stored_at === null || took_ms === null ? null : new Date(stored_at - Math.max(0, took_ms));
}

function endOf({ value, stored_at, took_ms }: StepRow, kind: StepKind): Date | null {
  if (stored_at === null) return null;
  return new Date(kind === "sleep" ? Number(value ?? stored_at - (took_ms ?? 0)) : stored_at);
}

const orderOf = ({ startedAt, endedAt }: JobStep) => (startedAt ?? endedAt)?.getTime() ?? 0;
