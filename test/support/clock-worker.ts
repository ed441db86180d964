// The deployable Worker with its clock, for tests and the bench. Its time can be put ahead, calls of the clock are counted, and the
// clock's alarm can be fired by hand: the platform's own alarms follow the real time.
import deployed, { SluiceClock as DeployedClock } from "../../src/worker.ts";

export { SluiceProducer } from "../../src/worker.ts";

/** What GET /simulated answers. */
export interface ClockStatus {
  /** Calls of the clock and its alarms so far. On the platform each is a request to a Durable Object. */
  calls: Record<string, number>;
  alarmAtMs: number | null;
  nowMs: number;
}

interface ClockContext {
  waitUntil(work: Promise<unknown>): void;
  storage: { getAlarm(): Promise<number | null>; deleteAlarm(): Promise<void> };
}

interface Env {
  CLOCK: { getByName(name: string): { status(): Promise<ClockStatus>; fireAlarm(): Promise<void> } };
  DATABASE_URL: string;
}

let aheadMs = 0;
/** Of the isolate, because the object is evicted when it has been idle for some seconds. */
const calls: Record<string, number> = {};
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...given: ConstructorParameters<typeof RealDate> | []) {
    if (given.length === 0) super(RealDate.now() + aheadMs);
    else super(...given);
  }

  static override now(): number {
    return RealDate.now() + aheadMs;
  }
} as DateConstructor;

const counted = ["tell", "noteLook", "tick", "read", "keepMetrics", "alarm"] as const;

export class SluiceClock extends DeployedClock {
  readonly #context: ClockContext;
  readonly #work = new Set<Promise<unknown>>();

  constructor(context: ClockContext & ConstructorParameters<typeof DeployedClock>[0], env: object) {
    super(context, env);
    this.#context = context;
    const waitUntil = context.waitUntil.bind(context);
    context.waitUntil = (work) => {
      this.#work.add(work);
      work.finally(() => this.#work.delete(work)).catch(() => {});
      waitUntil(work);
    };
  }

  async status(): Promise<ClockStatus> {
    const alarmAtMs = await this.#context.storage.getAlarm();
    return { calls, alarmAtMs, nowMs: Date.now() };
  }

  /** Resolves when the drains that it started have ended. */
  async fireAlarm(): Promise<void> {
    await this.#context.storage.deleteAlarm();
    await this.alarm();
    while (this.#work.size > 0) await Promise.allSettled(this.#work);
  }
}

for (const name of counted) {
  const method = DeployedClock.prototype[name] as (...given: unknown[]) => Promise<unknown>;
  Object.defineProperty(SluiceClock.prototype, name, {
    value(this: SluiceClock, ...given: unknown[]) {
      calls[name] = (calls[name] ?? 0) + 1;
      return method.apply(this, given);
    },
  });
}

export default {
  ...deployed,
  async fetch(request: Request, env: Env, context: Parameters<typeof deployed.fetch>[2]): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname !== "/simulated") return deployed.fetch(request, env, context);
    aheadMs = Number(searchParams.get("ahead") ?? aheadMs);
    const { host, pathname: database } = new URL(env.DATABASE_URL);
    const clock = env.CLOCK.getByName(`${host}${database}/sluice`);
    if (searchParams.has("alarm")) await clock.fireAlarm();
    return Response.json(await clock.status());
  },
};
