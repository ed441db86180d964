// The times of a schedule: a cron expression in a time zone. Daylight saving time follows croner's rules (docs/schedules.md):
// a time that the clock leaps over comes right after the gap, a fixed time that comes twice counts once, the first time, and
// expressions that repeat within the hour follow real time.
import { Cron } from "croner";

/** What happens to slots that nobody fired in time. */
export const missedRules = ["skip", "last", "all"] as const;
export type MissedRule = (typeof missedRules)[number];

/** What a slot does while the job of the slot before has not ended. */
export const overlapRules = ["allow", "skip"] as const;
export type OverlapRule = (typeof overlapRules)[number];

export interface CronTimes {
  cron: string;
  timeZone: string;
}

/** The part of a schedule that has been planned, and the database's time. */
export interface PlanFrom extends CronTimes {
  missed: MissedRule;
  fromMs: number;
  nowMs: number;
}

export interface SlotPlan {
  /** In order. Some may have passed. */
  slotsMs: number[];
  /** When the next ones have to be planned. Now: some that were missed did not fit into this plan. */
  refillMs: number;
}

/** A slot that is older was missed. The same as in migrations/functions/fire-slots.sql. */
const lateMs = 90_000;
/** Rounds plan every two minutes. */
const aheadMs = 6 * 60_000;
const slotsAhead = 10;
const dayMs = 86_400_000;
/** Any day of any year comes within some years after it. */
const someMs = Date.UTC(2026, 0, 1);

/** Null if both can be used. */
export function faultOfTimes({
  cron,
  timeZone,
}: CronTimes): { field: "cron" | "time_zone"; message: string } | null {
  const fields = cron.trim().split(/\s+/);
  if (fields.length !== 5 && fields.length !== 6)
    return { field: "cron", message: "must have five fields, or six with seconds first" };
  let times: Cron;
  try {
    times = new Cron(cron, { mode: "5-or-6-parts" });
  } catch (error) {
    return { field: "cron", message: (error as Error).message.replace(/^CronPattern: /, "") };
  }
  if (!isTimeZone(timeZone))
    return { field: "time_zone", message: "must be an IANA time zone such as Europe/Berlin" };
  return times.nextRun(new Date(someMs)) ? null : { field: "cron", message: "there is no such day" };
}

/** An offset such as +02:00 is no zone: it knows no daylight saving time. */
function isTimeZone(timeZone: string): boolean {
  if (!/^[A-Za-z]/.test(timeZone)) return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone });
    return true;
  } catch {
    return false;
  }
}

export function nextSlots(
  { cron, timeZone }: CronTimes,
  { afterMs, count }: { afterMs: number; count: number },
): number[] {
  const slots: number[] = [];
  for (const ms of slotsOf({ cron, timeZone }, afterMs)) {
    slots.push(ms);
    if (slots.length === count) break;
  }
  return slots;
}

/**
 * Ten slots, or as many as come in the next minutes. Before them those that were missed, as far as the rule wants them. If these
 * are as many as one plan may have, nothing follows them: the next plan goes on there, so none is left out.
 */
export function planSlots(
  { missed, fromMs, nowMs, ...times }: PlanFrom,
  { maxMissed }: { maxMissed: number },
): SlotPlan {
  const lastLateMs = nowMs - lateMs;
  const late = missedSlots(times, { missed, afterMs: fromMs, untilMs: lastLateMs, maxMissed });
  if (late.length === maxMissed) return { slotsMs: late, refillMs: nowMs };
  const slotsMs: number[] = [];
  for (const ms of slotsOf(times, Math.max(fromMs, lastLateMs))) {
    if (slotsMs.length >= slotsAhead && ms > nowMs + aheadMs) break;
    slotsMs.push(ms);
  }
  const middle = slotsMs[Math.floor(slotsMs.length / 2)];
  return { slotsMs: [...late, ...slotsMs], refillMs: middle ?? nowMs + dayMs };
}

interface MissedTime {
  missed: MissedRule;
  afterMs: number;
  untilMs: number;
  maxMissed: number;
}

function missedSlots(times: CronTimes, { missed, afterMs, untilMs, maxMissed }: MissedTime): number[] {
  if (missed === "skip" || untilMs <= afterMs) return [];
  return missed === "all"
    ? slotsUntil(times, { afterMs, untilMs, count: maxMissed })
    : lastSlot(times, { afterMs, untilMs });
}

/** It looks back over growing distances, because the whole time may have very many. */
function lastSlot(times: CronTimes, { afterMs, untilMs }: { afterMs: number; untilMs: number }): number[] {
  for (let distance = 60_000; ; distance *= 4) {
    const startMs = Math.max(afterMs, untilMs - distance);
    const slots = slotsUntil(times, { afterMs: startMs, untilMs });
    if (slots.length > 0 || startMs === afterMs) return slots.slice(-1);
  }
}

function slotsUntil(
  times: CronTimes,
  { afterMs, untilMs, count }: { afterMs: number; untilMs: number; count?: number },
): number[] {
  const slots: number[] = [];
  for (const ms of slotsOf(times, afterMs)) {
    if (ms > untilMs || slots.length === count) break;
    slots.push(ms);
  }
  return slots;
}

function* slotsOf({ cron, timeZone }: CronTimes, afterMs: number): Generator<number> {
  const times = new Cron(cron, { timezone: timeZone, mode: "5-or-6-parts" });
  for (let slot = times.nextRun(new Date(afterMs)); slot; slot = times.nextRun(slot)) yield slot.getTime();
}
