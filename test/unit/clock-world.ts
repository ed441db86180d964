// A small world around the clock's policy, in simulated time: isolates that enqueue, a database, the clock's alarm, and the
// crons. Calls take time, answers are lost, looks fail, and the clock is evicted in the middle of a look.
import {
  type ClockState,
  clockTimes,
  endLook,
  failLook,
  newClock,
  nextLookMs,
  noteLook,
  startLook,
  tellClock,
  tickClock,
} from "../../src/core/policy/clock.ts";

export interface Enqueue {
  atMs: number;
  isolate: number;
  delayMs: number;
  /** How long the call of the clock, and the statement, are under way. */
  callMs: number;
  commitMs: number;
  /** The clock cannot be reached for "I may enqueue", or nobody tells it when the job is due. */
  isHoldLost: boolean;
  isDueLost: boolean;
}

/** How each look of the clock goes, in order. The rest goes well. */
export interface LookFault {
  kind: "none" | "error" | "eviction";
  ms: number;
}

export interface SimulatedJob {
  enqueue: Enqueue;
  committedMs: number;
  dueMs: number;
  /** When a look first saw that it is due. */
  seenMs: number | null;
}

export interface World {
  jobs: SimulatedJob[];
  /** When the database was asked anything. */
  touchedMs: number[];
}

type Found = { hasWork: boolean; dueMs: number | null; upkeepMs: number | null };

export function simulate(options: {
  enqueues: readonly Enqueue[];
  faults: readonly LookFault[];
  maxSleepMs: number;
  endMs: number;
}): World {
  const { enqueues, maxSleepMs, endMs } = options;
  const faults = [...options.faults];
  const world: World = { jobs: [], touchedMs: [] };
  const isolates = Array.from({ length: 3 }, () => ({ awakeUntilMs: 0, lookAtMs: 0 }));
  const events: { atMs: number; run(): void }[] = [];
  let state: ClockState = newClock;
  let alarm: { atMs: number } | null = null;
  let nowMs = 0;

  const at = (atMs: number, run: () => void) => events.push({ atMs: Math.max(atMs, nowMs), run });

  /** As edge/clock/sluice-clock.ts does it. */
  function become(next: ClockState): void {
    state = next;
    const atMs = nextLookMs(state);
    if (atMs !== null && !state.isWaking) setAlarm(atMs);
  }

  function setAlarm(atMs: number): void {
    const set = { atMs };
    alarm = set;
    at(atMs, () => alarm === set && fireAlarm());
  }

  function fireAlarm(): void {
    const startedMs = nowMs;
    const started = startLook(state, nowMs);
    alarm = null;
    become(started ?? state);
    if (!started) return;
    const { kind, ms } = faults.shift() ?? { kind: "none", ms: 20 };
    let found: Found;
    at(nowMs + ms / 2, () => {
      if (kind === "none") found = readDatabase();
    });
    at(nowMs + ms, () => {
      if (kind === "error") become(failLook(state, nowMs));
      else if (kind === "eviction")
        setAlarm(nowMs + 2000); // the platform tries the alarm again
      else {
        const upkeepMs = started.isVisiting ? found.upkeepMs : undefined;
        become(endLook(state, { ...found, startedMs, nowMs, upkeepMs }));
      }
    });
  }

  function readDatabase(): Found {
    world.touchedMs.push(nowMs);
    const waiting = world.jobs.filter(({ seenMs, committedMs }) => seenMs === null && committedMs <= nowMs);
    const due = waiting.filter(({ dueMs }) => dueMs <= nowMs);
    for (const job of due) job.seenMs = nowMs;
    const later = waiting.filter(({ dueMs }) => dueMs > nowMs).map(({ dueMs }) => dueMs - nowMs);
    return { hasWork: due.length > 0, dueMs: later.length > 0 ? Math.min(...later) : null, upkeepMs: null };
  }

  function enqueue(given: Enqueue): void {
    const { atMs, callMs, commitMs, delayMs, isHoldLost, isDueLost } = given;
    const isolate = isolates[given.isolate % isolates.length];
    if (!isolate) return;
    if (nowMs >= isolate.awakeUntilMs && !isHoldLost)
      at(atMs + callMs, () => {
        become(tellClock(state, { nowMs, dueMs: null, isWork: true }));
        isolate.awakeUntilMs = atMs + clockTimes.awakeMs;
      });
    at(atMs + commitMs, () => {
      world.touchedMs.push(nowMs);
      world.jobs.push({ enqueue: given, committedMs: nowMs, dueMs: nowMs + delayMs, seenMs: null });
      if (delayMs > 0 && !isDueLost) tellDue(isolate, { delayMs, callMs });
    });
  }

  function tellDue(isolate: { lookAtMs: number }, { delayMs, callMs }: { delayMs: number; callMs: number }) {
    const isKnown = isolate.lookAtMs > nowMs && isolate.lookAtMs <= nowMs + delayMs + clockTimes.spacingMs;
    if (isKnown) return;
    const sentMs = nowMs;
    at(nowMs + callMs, () => {
      become(tellClock(state, { nowMs, dueMs: delayMs, isWork: false }));
      const lookMs = nextLookMs({ ...state, visitAtMs: null });
      isolate.lookAtMs = lookMs === null ? 0 : sentMs + lookMs - nowMs;
    });
  }

  /** A drain round each minute, a reap and a watch round in turns. Both end with a look of the clock. */
  function cron(minute: number): void {
    for (const kind of ["drain", minute % 2 ? "watch" : "reap"]) {
      const ticked = tickClock(state, { nowMs, maxSleepMs });
      become(ticked.state);
      if (ticked.isAsleep) continue;
      const startedMs = nowMs;
      const found = readDatabase();
      if (kind === "drain") at(nowMs + 30, () => become(noteLook(state, { ...found, startedMs, nowMs })));
      else at(nowMs + 500, () => become(tellClock(state, { nowMs, dueMs: 0, isWork: false })));
    }
  }

  for (let minute = 1; minute * 60_000 <= endMs; minute++) at(minute * 60_000, () => cron(minute));
  for (const given of enqueues) at(given.atMs, () => enqueue(given));
  for (;;) {
    events.sort((a, b) => b.atMs - a.atMs);
    const event = events.pop();
    if (!event || event.atMs > endMs) return world;
    nowMs = event.atMs;
    event.run();
  }
}
