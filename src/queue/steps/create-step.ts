// The durable steps that a handler gets as `step`. Each looks at what is stored first, and does only what is not.
import { FatalError, RetryableError } from "../../core/errors.ts";
import type { Json } from "../../core/job.ts";
import { storableJson, textOf } from "../drain/storable.ts";
import { runChildren } from "./run-children.ts";
import type { ChildType, Step, StepOptions, Stored } from "./step.ts";
import {
  callStep,
  createStepCalls,
  type Known,
  msSince,
  never,
  pause,
  type StepCalls,
  type StepHost,
  store,
} from "./step-calls.ts";

/** A sleep of up to this time is not worth another invocation. */
const shortSleepMs = 5_000;
const longestSleepSeconds = 31_536_000;
const maxNameCharacters = 200;

type Body = (context: { signal: AbortSignal }) => unknown;

export function createStep(host: StepHost): Step {
  const calls = createStepCalls(host);
  const running = { count: 0 };
  return {
    async run<Value>(
      name: string,
      body: (context: { signal: AbortSignal }) => Value | Promise<Value>,
      { timeoutSeconds, schema }: StepOptions<Stored<Value>> = {},
    ) {
      refuseBadName(name);
      const value = await callStep(calls, name, (id, known) =>
        runOnce(calls, known, { id, body, timeoutSeconds, running }),
      );
      return schema ? parsed(name, value, schema) : (value as Stored<Value>);
    },
    async sleep(name, seconds) {
      refuseBadName(name);
      return callStep(calls, `sleep:${name}`, (id, known) => sleep(calls, known, { id, seconds }));
    },
    async waitFor(signal, key, { timeoutSeconds } = {}) {
      const wait = { name: signal.name, key, timeoutSeconds };
      const found = await callStep(calls, `wait:${signal.name}:${key}`, (id, known) =>
        waitForSignal(calls, known, { id, ...wait }),
      );
      return found && parsed(`waitFor ${signal.name}`, found.payload, signal.payload);
    },
    async all<Child extends ChildType>(name: string, child: Child, payloads: readonly unknown[]) {
      refuseBadName(name);
      const ends = await callStep(calls, `all:${name}`, (id, known) =>
        runChildren(calls, known, { id, child, payloads }),
      );
      return ends as never;
    },
  };
}

function refuseBadName(name: string): void {
  if (typeof name !== "string" || name.length === 0 || name.length > maxNameCharacters)
    throw new FatalError(`a step's name must have 1 to ${maxNameCharacters} characters`);
}

/** `running` counts the functions that run now. */
async function runOnce(
  calls: StepCalls,
  known: Known,
  {
    id,
    body,
    timeoutSeconds,
    running,
  }: { id: string; body: Body; timeoutSeconds: number | undefined; running: { count: number } },
): Promise<Json> {
  const { host } = calls;
  const stored = known.steps.get(id);
  if (stored !== undefined) return stored;
  // Without progress the next invocation would end here too. So the step runs with the time that there is. If the platform
  // cuts it off, that uses up an attempt.
  const mayWait = calls.hasProgress && running.count === 0;
  if (mayWait && !host.hasRoom(timeoutSeconds ?? host.timeoutSeconds ?? 0))
    return pause(calls, { untilMs: 0 });
  running.count++;
  try {
    host.restart();
    const beganMs = host.clock.nowMs();
    const value = storable(id, await inTime(host, id, { body, timeoutSeconds }));
    return await store(calls, known, { name: id, value, took_ms: msSince(host, beganMs) });
  } finally {
    running.count--;
  }
}

/** The function's result, or an error after its time-out. */
async function inTime(
  { clock, signal }: StepHost,
  id: string,
  { body, timeoutSeconds }: { body: Body; timeoutSeconds: number | undefined },
): Promise<unknown> {
  if (timeoutSeconds === undefined) return body({ signal });
  const timedOut = new AbortController();
  const failed = Promise.withResolvers<never>();
  const cancel = clock.setTimer(timeoutSeconds * 1000, () => {
    const error = new RetryableError(`the step "${id}" timed out after ${timeoutSeconds} s`);
    timedOut.abort(error);
    failed.reject(error);
  });
  try {
    const ended = (async () => body({ signal: AbortSignal.any([signal, timedOut.signal]) }))();
    return await Promise.race([ended, failed.promise]);
  } finally {
    cancel();
  }
}

/** A copy as JSON, so that the first run gets the same as later ones. */
function storable(id: string, value: unknown): Json {
  try {
    return storableJson(value);
  } catch (error) {
    throw new FatalError(`the value of the step "${id}" cannot be kept: ${textOf(error)}`);
  }
}

function parsed<Value>(name: string, value: Json, schema: { parse(value: unknown): Value }): Value {
  try {
    return schema.parse(value);
  } catch (error) {
    throw new FatalError(`the stored value of the step "${name}" does not fit its schema: ${textOf(error)}`);
  }
}

async function sleep(
  calls: StepCalls,
  known: Known,
  { id, seconds }: { id: string; seconds: number },
): Promise<void> {
  await waitUntil(calls, await endOfWait(calls, known, { id, seconds }));
}

/** By the local clock. The first call of it, in whatever attempt, has set the time. */
async function endOfWait(
  calls: StepCalls,
  known: Known,
  { id, seconds }: { id: string; seconds: number },
): Promise<number> {
  if (!(seconds >= 0 && seconds <= longestSleepSeconds))
    throw new FatalError(`${id}: must be 0 to ${longestSleepSeconds} seconds, not ${seconds}`);
  const overAt = known.steps.get(id) ?? (await store(calls, known, { name: id, seconds }));
  return Number(overAt) - known.aheadMs;
}

/** What came is stored, so that it stays the same for the handler. Null: the time was over first. */
async function waitForSignal(
  calls: StepCalls,
  known: Known,
  wait: { id: string; name: string; key: string; timeoutSeconds: number | undefined },
): Promise<{ payload: Json } | null> {
  const { host } = calls;
  const { id, name, key, timeoutSeconds: seconds } = wait;
  const stored = known.steps.get(id);
  if (stored !== undefined) return stored as { payload: Json } | null;
  const untilMs =
    seconds === undefined ? undefined : await endOfWait(calls, known, { id: `${id}:until`, seconds });
  const found = await host.findSignal(name, key);
  if (!found && !(untilMs !== undefined && untilMs <= host.clock.nowMs()))
    return pause(calls, { untilMs, for: { signal: { name, key } } });
  return (await store(calls, known, { name: id, value: found })) as { payload: Json } | null;
}

async function waitUntil(calls: StepCalls, untilMs: number): Promise<void> {
  const { host } = calls;
  const leftMs = untilMs - host.clock.nowMs();
  if (leftMs <= 0) return;
  const shortMs = Math.min(shortSleepMs, (host.timeoutSeconds ?? Number.POSITIVE_INFINITY) * 500);
  if (leftMs > shortMs || !host.hasRoom(leftMs / 1000)) return pause(calls, { untilMs });
  host.restart();
  await host.clock.sleep(leftMs);
  if (host.signal.aborted) return never();
}
