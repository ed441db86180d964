// What an invocation tells the clock, in as few calls as possible. A call that fails costs only time: the crons go on as
// they do without a clock. So no method here ever throws.
import { describeError } from "../../core/database-errors.ts";
import { clockTimes } from "../../core/policy/clock.ts";
import type { NextDue } from "../../core/sql/next-due.ts";
import type { Ports } from "../../queue/ports.ts";
import type { IsolateState } from "../isolate-state.ts";
import type { Settings } from "../settings/env.ts";
import { type ClockCalls, type ClockReading, clockOf, type News } from "./clock-binding.ts";

export interface AlarmClock {
  /** Has the database looked at after that time, or visited with `upkeep`. */
  wakeIn: Ports["wakeIn"];
  /** Tells that this isolate may enqueue or claim. Resolves when the clock knows it, or cannot be reached. */
  holdAwake(): Promise<void>;
  /** Tells what a round found. */
  noteLook(look: NextDue & { startedMs: number; hasWork: boolean }): Promise<void>;
  /** Whether the cron leaves the database alone. If so, it was told so before, that many milliseconds ago. */
  tick(): Promise<{ isAsleep: boolean; sleptMsAgo: number | null }>;
  /** Null if there is no clock, "unreachable" if it does not answer. */
  read(): Promise<ClockReading | "unreachable" | null>;
  keepMetrics(text: string): Promise<void>;
}

interface AlarmClockOptions {
  settings: Settings;
  isolate: IsolateState;
  ports: Pick<Ports, "clock" | "log">;
  waitUntil(work: Promise<unknown>): void;
}

const answerWithinMs = 1_000;

export function createAlarmClock({ settings, isolate, ports, waitUntil }: AlarmClockOptions): AlarmClock {
  const calls = clockOf(settings);
  const { clock: known } = isolate;
  const { nowMs } = ports.clock;
  const maxSleepMs = settings.maxSleepMinutes * 60_000;

  async function call<T>(send: (calls: ClockCalls) => Promise<T>): Promise<T | undefined> {
    if (!calls) return undefined;
    const late = Promise.withResolvers<never>();
    const cancel = ports.clock.setTimer(answerWithinMs, () => late.reject(new Error("no answer in time")));
    try {
      return await Promise.race([send(calls), late.promise]);
    } catch (error) {
      ports.log.warn("the clock is out of reach", describeError(error));
      return undefined;
    } finally {
      cancel();
    }
  }

  /** Times count from before the call, so that they end here before they end at the clock. */
  async function tell(news: News): Promise<void> {
    const sentMs = nowMs();
    const answer = await call((clock) => clock.tell(news));
    if (!answer) return;
    if (news.isWork) known.awakeUntilMs = sentMs + answer.awakeForMs;
    known.lookAtMs = answer.lookInMs === null ? 0 : sentMs + answer.lookInMs;
  }

  /** Requests that come while a call is under way are told together, in one more call. */
  async function tellDue(dueAtMs: number): Promise<void> {
    for (let nextMs: number | null = dueAtMs; nextMs !== null; nextMs = known.telling?.againMs ?? null) {
      known.telling = { untilMs: nowMs() + answerWithinMs, againMs: null };
      await tell({ dueMs: Math.max(nextMs - nowMs(), 0), isWork: false });
    }
    known.telling = null;
  }

  function wakeIn(ms: number, { upkeep }: { upkeep: boolean } = { upkeep: false }): void {
    if (upkeep) {
      waitUntil(tell({ dueMs: null, visitMs: ms, isWork: false }));
      return;
    }
    const dueAtMs = nowMs() + ms;
    // A look in time that has not begun will see this job too.
    const isKnown = known.lookAtMs > nowMs() && known.lookAtMs <= dueAtMs + clockTimes.spacingMs;
    if (!calls || isKnown) return;
    if (known.telling && nowMs() < known.telling.untilMs)
      known.telling.againMs = Math.min(known.telling.againMs ?? dueAtMs, dueAtMs);
    else waitUntil(tellDue(dueAtMs));
  }

  return {
    wakeIn,
    async holdAwake() {
      if (calls && nowMs() >= known.awakeUntilMs) await tell({ dueMs: null, isWork: true });
    },
    async noteLook({ startedMs, ...look }) {
      // If the database never sleeps, the next round comes in any case.
      if (maxSleepMs === 0) return look.dueMs === null ? undefined : wakeIn(look.dueMs);
      await call((clock) => clock.noteLook({ ...look, msAgo: nowMs() - startedMs }));
    },
    async tick() {
      const answer = maxSleepMs > 0 ? await call((clock) => clock.tick({ maxSleepMs })) : undefined;
      return answer ?? { isAsleep: false, sleptMsAgo: null };
    },
    async read() {
      return calls ? ((await call((clock) => clock.read({ maxSleepMs }))) ?? "unreachable") : null;
    },
    async keepMetrics(text) {
      await call((clock) => clock.keepMetrics(text));
    },
  };
}
