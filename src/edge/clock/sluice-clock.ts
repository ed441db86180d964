// The clock: one Durable Object for each deployment. It knows when something is next due, and then has the database looked at
// and drains started. core/policy/clock.ts decides; here are the storage, the alarm and the calls to the Worker.
//
// An alarm never runs beside another one. So it waits only for the look, and not for the drains, which may take minutes. The
// object holds their requests open, and each is an invocation of the Worker with its own limits.
//
// The import works in Workers only. That is why the class has a path of its own, sluice/clock.
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
import { describeError } from "../../core/database-errors.ts";
import {
  type ClockState,
  clockTimes,
  endLook,
  failLook,
  isAsleep,
  newClock,
  nextLookMs,
  noteLook,
  sleptMsAgo,
  startLook,
  tellClock,
  tickClock,
} from "../../core/policy/clock.ts";
import { consoleLog } from "../console-log.ts";
import { callDrain, callWake } from "../drain-call.ts";
import { isolateStateFor } from "../isolate-state.ts";
import { type SelfBinding, settingsFor } from "../settings/env.ts";
import { systemClock } from "../system-clock.ts";
import { createAlarmClock } from "./alarm-clock.ts";
import type { ClockAnswer, ClockCalls, ClockReading, News, RoundLook } from "./clock-binding.ts";

/** The most drains of one queue that the clock runs at one time. The crons start their own. */
const maxDrains = 16;
const againMs = 5_000;

/** The parts of the platform's types that the clock uses. */
interface Context {
  exports?: { default?: SelfBinding };
  waitUntil(work: Promise<unknown>): void;
  storage: {
    kv: { get(key: string): unknown; put(key: string, value: unknown): void };
    setAlarm(atMs: number): Promise<void>;
  };
}

type Base = new (context: unknown, env: unknown) => object;

export class SluiceClock extends (DurableObject as Base) implements ClockCalls {
  readonly #context: Context;
  readonly #env: object;
  #state: ClockState;
  #alarmAtMs: number | null = null;
  readonly #drains = new Map<string, number>();

  constructor(context: Context, env: object) {
    super(context, env);
    this.#context = context;
    this.#env = env;
    this.#state = { ...newClock, ...(this.#context.storage.kv.get("state") as ClockState | undefined) };
  }

  async tell(news: News): Promise<ClockAnswer> {
    const nowMs = Date.now();
    await this.#become(tellClock(this.#state, { ...news, nowMs }));
    const lookMs = nextLookMs({ ...this.#state, visitAtMs: null });
    return { awakeForMs: clockTimes.awakeMs, lookInMs: lookMs === null ? null : lookMs - nowMs };
  }

  /** Is called by a round that has looked at the database. */
  async noteLook({ msAgo, ...look }: RoundLook): Promise<void> {
    const nowMs = Date.now();
    await this.#become(noteLook(this.#state, { ...look, nowMs, startedMs: nowMs - msAgo }));
  }

  /** A cron asks whether to leave the database alone. An alarm that was lost is set again. */
  async tick({ maxSleepMs }: { maxSleepMs: number }) {
    const nowMs = Date.now();
    const msAgo = sleptMsAgo(this.#state, nowMs);
    const ticked = tickClock(this.#state, { nowMs, maxSleepMs });
    this.#alarmAtMs = null;
    await this.#become(ticked.state);
    return { isAsleep: ticked.isAsleep, sleptMsAgo: msAgo };
  }

  async read({ maxSleepMs }: { maxSleepMs: number }): Promise<ClockReading> {
    const nowMs = Date.now();
    const metrics = (this.#context.storage.kv.get("metrics") as string | undefined) ?? null;
    return { state: this.#state, isAsleep: isAsleep(this.#state, { nowMs, maxSleepMs }), nowMs, metrics };
  }

  async keepMetrics(text: string): Promise<void> {
    this.#context.storage.kv.put("metrics", text);
  }

  async alarm(): Promise<void> {
    const startedMs = Date.now();
    const started = startLook(this.#state, startedMs);
    this.#alarmAtMs = null;
    await this.#become(started ?? this.#state);
    if (!started) return;
    const upkeep = started.isVisiting;
    try {
      const { queues, ...look } = await callWake(await this.#worker(), { upkeep });
      const upkeepMs = upkeep ? look.upkeepMs : undefined;
      const ended = { startedMs, nowMs: Date.now(), hasWork: queues.length > 0, dueMs: look.dueMs, upkeepMs };
      await this.#become(endLook(this.#state, ended));
      for (const queue of queues) this.#startDrain(queue);
    } catch (error) {
      consoleLog.warn("the clock could not look at the database", describeError(error));
      await this.#become(failLook(this.#state, Date.now()));
    }
  }

  /** What is over the limit is looked at again when a drain has ended. */
  #startDrain(queue: string): void {
    const running = this.#drains.get(queue) ?? 0;
    if (running >= maxDrains) return;
    this.#drains.set(queue, running + 1);
    this.#context.waitUntil(this.#drain(queue, { wasFull: running + 1 === maxDrains }));
  }

  async #drain(queue: string, { wasFull }: { wasFull: boolean }): Promise<void> {
    try {
      await callDrain(await this.#worker(), queue);
      if (wasFull) await this.tell({ dueMs: 0, isWork: false });
    } catch (error) {
      consoleLog.warn("a drain of the clock failed", { queue, ...describeError(error) });
      await this.tell({ dueMs: againMs, isWork: false });
    } finally {
      this.#drains.set(queue, (this.#drains.get(queue) ?? 1) - 1);
    }
  }

  async #worker() {
    const { self = this.#context.exports?.default, adminKeys } = await settingsFor(this.#env);
    if (!self) throw new Error("the clock needs the binding SELF");
    return { self, adminKeys, nowMs: Date.now() };
  }

  /** The state is stored before the caller has its answer: the platform holds answers back until writes are safe. */
  async #become(state: ClockState): Promise<void> {
    if (state !== this.#state) this.#context.storage.kv.put("state", state);
    this.#state = state;
    const atMs = nextLookMs(state);
    if (atMs === null || atMs === this.#alarmAtMs || state.isWaking) return;
    this.#alarmAtMs = atMs;
    await this.#context.storage.setAlarm(atMs);
  }
}

/**
 * For other Workers of the account, through a service binding with `entrypoint = "SluiceProducer"`:
 * `ctx.waitUntil(env.SLUICE.nudge())`. Only a binding can call it, so it needs no key.
 */
export class SluiceProducer extends (WorkerEntrypoint as Base) {
  readonly #context: Context;
  readonly #env: object;

  constructor(context: Context, env: object) {
    super(context, env);
    this.#context = context;
    this.#env = env;
  }

  /** Says that jobs were enqueued by SQL. Needs the clock, and looks at all queues. */
  async nudge(): Promise<void> {
    const settings = await settingsFor(this.#env);
    const waitUntil = (work: Promise<unknown>) => this.#context.waitUntil(work);
    const ports = { clock: systemClock, log: consoleLog };
    createAlarmClock({ settings, isolate: isolateStateFor(settings), ports, waitUntil }).wakeIn(0);
  }
}
