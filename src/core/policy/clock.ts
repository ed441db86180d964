// When the clock wakes drains, when it visits the database, and when the crons may leave the database alone. The clock is a
// Durable Object (edge/clock/sluice-clock.ts). Here is all that it decides, without a clock of its own: docs/clock.md.
//
// Postgres alone decides what is right. What the clock knows is a hint: a wrong one costs a look at the database or some time.
//
// 1. Whoever learns when something is due tells it. The earliest time counts, and only a look at the database after that
//    time forgets it. A look sees each job as due now, or says when it is due (next-due.sql). So no announced time is lost.
// 2. Whoever may enqueue or claim holds the database awake for a minute, and tells this before the caller gets an answer. It
//    needs to say nothing more in that minute. The database may sleep only after a visit that began later than the last
//    such minute ended, and later by more than a statement may take. That visit sees all that was committed.

export interface ClockState {
  /** When a job is next due, as far as anybody has told. */
  dueAtMs: number | null;
  /** When the database must be visited: leases run out, jobs expire, or nobody holds it awake any more. */
  visitAtMs: number | null;
  awakeUntilMs: number;
  /** The start of the last visit, if it found nothing to do and nobody has held the database awake since. */
  idleSinceMs: number | null;
  /** After a sleep, the rounds of all kinds run until then. */
  openUntilMs: number;
  /** The last look, and whether it is under way. */
  wokenAtMs: number;
  isWaking: boolean;
  isVisiting: boolean;
  /** Looks that failed, since the last that did not. */
  failures: number;
  /** When a cron was last told to let the database sleep. */
  sleptAtMs: number | null;
}

export const newClock: ClockState = {
  dueAtMs: null,
  visitAtMs: null,
  awakeUntilMs: 0,
  idleSinceMs: null,
  openUntilMs: 0,
  wokenAtMs: 0,
  isWaking: false,
  isVisiting: false,
  failures: 0,
  sleptAtMs: null,
};

export const clockTimes = {
  /** How long the database is held awake by one call. */
  awakeMs: 60_000,
  /** Longer than a request waits for its statement, with its retry. */
  graceMs: 15_000,
  /** Two looks are at least this far apart, so that many due times make few looks. */
  spacingMs: 200,
  /** When a visit leaves something that was due. */
  againMs: 10_000,
  maxBackoffMs: 60_000,
  /** After a sleep: long enough for each kind of round, and shorter than two watch rounds. */
  openMs: 150_000,
  /** An alarm this late is lost. */
  lateMs: 60_000,
} as const;

export interface Look {
  startedMs: number;
  nowMs: number;
  /** There are due jobs. */
  hasWork: boolean;
  /** In how many milliseconds the next job is due. Null: nothing is planned. */
  dueMs: number | null;
  /** The same for leases, expiry and notices. Undefined: the look did not ask for them, so it was no visit. */
  upkeepMs: number | null | undefined;
}

/** Somebody knows when a job is due, or when a visit is, or holds the database awake. */
export function tellClock(
  state: ClockState,
  {
    nowMs,
    dueMs,
    visitMs = null,
    isWork,
  }: { nowMs: number; dueMs: number | null; visitMs?: number | null; isWork: boolean },
): ClockState {
  const told = {
    ...state,
    dueAtMs: earliest(state.dueAtMs, after(nowMs, dueMs)),
    visitAtMs: earliest(state.visitAtMs, after(nowMs, visitMs)),
  };
  return isWork ? holdAwake(told, nowMs) : told;
}

function holdAwake(state: ClockState, nowMs: number): ClockState {
  const awakeUntilMs = Math.max(state.awakeUntilMs, nowMs + clockTimes.awakeMs);
  const lastVisitMs = awakeUntilMs + clockTimes.graceMs;
  const visitAtMs = earliest(state.visitAtMs, lastVisitMs);
  return { ...state, awakeUntilMs, visitAtMs, idleSinceMs: null };
}

/** When to look at the database. Null: nobody has told anything. */
export function nextLookMs({ dueAtMs, visitAtMs, wokenAtMs }: ClockState): number | null {
  const atMs = earliest(dueAtMs, visitAtMs);
  return atMs === null ? null : Math.max(atMs, wokenAtMs + clockTimes.spacingMs);
}

/** Null if nothing is due, as for an alarm that came twice. What a look that never ended was to see is due again. */
export function startLook(before: ClockState, nowMs: number): ClockState | null {
  const state = before.isWaking ? failLook(before, nowMs) : before;
  const isDue = before.isWaking || (state.dueAtMs !== null && state.dueAtMs <= nowMs);
  const isVisiting = before.isVisiting || (state.visitAtMs !== null && state.visitAtMs <= nowMs);
  if (!isDue && !isVisiting) return null;
  return {
    ...state,
    dueAtMs: isDue ? null : state.dueAtMs,
    visitAtMs: isVisiting ? null : state.visitAtMs,
    wokenAtMs: nowMs,
    isWaking: true,
    isVisiting,
  };
}

export function failLook(state: ClockState, nowMs: number): ClockState {
  const backoffMs = Math.min(1000 * 2 ** state.failures, clockTimes.maxBackoffMs);
  return {
    ...state,
    isWaking: false,
    isVisiting: false,
    failures: state.failures + 1,
    dueAtMs: earliest(state.dueAtMs, nowMs + backoffMs),
    visitAtMs: state.isVisiting ? earliest(state.visitAtMs, nowMs + backoffMs) : state.visitAtMs,
  };
}

/** The clock's own look has ended. */
export function endLook(state: ClockState, look: Look): ClockState {
  return noteLook({ ...state, isWaking: false, isVisiting: false, failures: 0 }, look);
}

/** Somebody has looked at the database: the clock itself, or a round. */
export function noteLook(before: ClockState, look: Look): ClockState {
  const { startedMs, nowMs, hasWork, dueMs, upkeepMs } = look;
  const told = tellClock(before, { nowMs, dueMs, isWork: hasWork });
  if (upkeepMs === undefined) return told;
  const upkeepAtMs = after(nowMs, upkeepMs === null || upkeepMs > 0 ? upkeepMs : clockTimes.againMs);
  const lastVisitMs = told.awakeUntilMs + clockTimes.graceMs;
  return startedMs >= lastVisitMs
    ? { ...told, visitAtMs: upkeepAtMs, idleSinceMs: startedMs }
    : { ...told, visitAtMs: earliest(upkeepAtMs, lastVisitMs) };
}

/** Whether the crons leave the database alone. An alarm that is late is lost, so the crons go on. */
export function isAsleep(
  state: ClockState,
  { nowMs, maxSleepMs }: { nowMs: number; maxSleepMs: number },
): boolean {
  const { idleSinceMs, openUntilMs, dueAtMs, visitAtMs } = state;
  if (idleSinceMs === null || nowMs < openUntilMs || nowMs >= idleSinceMs + maxSleepMs) return false;
  const nextMs = earliest(dueAtMs, visitAtMs);
  return nextMs === null || nowMs < nextMs + clockTimes.lateMs;
}

/** How long ago the database was last left alone on purpose. Null: never. */
export function sleptMsAgo({ sleptAtMs }: ClockState, nowMs: number): number | null {
  return sleptAtMs === null ? null : nowMs - sleptAtMs;
}

/** The clock is told to look at a time and has not, though an alarm is never that late. */
export function isOverdue(state: ClockState, nowMs: number): boolean {
  const atMs = nextLookMs(state);
  return atMs !== null && nowMs >= atMs + 2 * clockTimes.lateMs;
}

/**
 * A cron asks whether its round may run. At the end of a sleep, and the first time of all, it opens a time in which the rounds of
 * all kinds run.
 */
export function tickClock(
  state: ClockState,
  options: { nowMs: number; maxSleepMs: number },
): { state: ClockState; isAsleep: boolean } {
  const { nowMs } = options;
  if (isAsleep(state, options)) return { state: { ...state, sleptAtMs: nowMs }, isAsleep: true };
  const isNew = state.openUntilMs === 0;
  const isWakingUp = (state.idleSinceMs !== null || isNew) && nowMs >= state.openUntilMs;
  if (!isWakingUp) return { state, isAsleep: false };
  return { state: { ...state, idleSinceMs: null, openUntilMs: nowMs + clockTimes.openMs }, isAsleep: false };
}

function earliest(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}

/** Whole milliseconds, as alarms have them: one that fires before its time would find nothing due. */
function after(nowMs: number, ms: number | null): number | null {
  return ms === null ? null : Math.ceil(nowMs + ms);
}
