// The calls of one job's durable steps: their names, what is stored of them, and the end of the attempt when all that is left
// waits.
//
// When the attempt has ended, its calls never settle. So no `catch` of the handler can take that for an error, and nothing of
// the handler goes on. The next invocation runs the handler from its beginning and gets the stored values.
import { Suspension } from "../../core/errors.ts";
import type { Json, NewJob, NewStep, Outcome, StepValues, Wait } from "../../core/job.ts";
import type { JobEnd } from "../../core/sql/blockers.ts";
import type { Clock } from "../ports.ts";

/** What the steps of one job need from the drain or puller that runs it. */
export interface StepHost {
  readonly clock: Clock;
  /** Aborted when the attempt has ended. */
  readonly signal: AbortSignal;
  /** The handler's time-out, which is also that of a step. Undefined: none. */
  readonly timeoutSeconds: number | undefined;
  /** What earlier claims have stored, and the database's time. */
  read(): Promise<{ steps: StepValues; nowMs: number }>;
  /** Answers with what is stored now. Never settles if the attempt has ended. */
  write(step: NewStep): Promise<Json>;
  /** Whether a step can begin that takes up to this long. */
  hasRoom(seconds: number): boolean;
  /** Restarts the handler's time-out: the job makes progress. */
  restart(): void;
  /** Ends the attempt. */
  end(reason: Error): void;
  /** Null if nobody has sent the signal yet. */
  findSignal(name: string, key: string): Promise<{ payload: Json } | null>;
  /** Enqueues jobs and answers with their ids. Jobs with the same keys are enqueued once. */
  enqueue(jobs: readonly NewJob[]): Promise<string[]>;
  findOutcomes(ids: readonly string[]): Promise<JobEnd[]>;
  readonly jobId: string;
  readonly traceparent: string | null;
}

/** Until a time by the local clock, a signal or the end of jobs, whichever comes first. */
export interface PausedCall {
  untilMs?: number | undefined;
  for?: Pick<Wait, "signal" | "jobs">;
}

export interface Known {
  readonly steps: Map<string, Json>;
  /** How far the database's clock is ahead of the local one. */
  readonly aheadMs: number;
}

export interface StepCalls {
  readonly host: StepHost;
  readonly counts: Map<string, number>;
  known: Promise<Known> | undefined;
  /** Calls that are neither over nor waiting. The attempt is not suspended while there are any. */
  active: number;
  /** This claim has stored something, so the next one will come further. */
  hasProgress: boolean;
  readonly paused: PausedCall[];
}

export function createStepCalls(host: StepHost): StepCalls {
  return { host, counts: new Map(), known: undefined, active: 0, hasProgress: false, paused: [] };
}

export async function callStep<Value>(
  calls: StepCalls,
  name: string,
  work: (id: string, known: Known) => Promise<Value>,
): Promise<Value> {
  const { host } = calls;
  const id = numbered(calls, name);
  if (host.signal.aborted) return never();
  calls.active++;
  try {
    calls.known ??= readKnown(host);
    return await work(id, await calls.known);
  } catch (error) {
    if (host.signal.aborted) return never();
    throw error;
  } finally {
    calls.active--;
    suspendIfIdle(calls);
  }
}

/** Called before anything is awaited, so that the numbers follow the order of the calls. */
function numbered({ counts }: StepCalls, name: string): string {
  const count = (counts.get(name) ?? 0) + 1;
  counts.set(name, count);
  return count === 1 ? name : `${name}#${count}`;
}

async function readKnown(host: StepHost): Promise<Known> {
  const { steps, nowMs } = await host.read();
  return { steps: new Map(Object.entries(steps)), aheadMs: nowMs - host.clock.nowMs() };
}

export async function store(calls: StepCalls, known: Known, step: NewStep): Promise<Json> {
  const value = await calls.host.write(step);
  known.steps.set(step.name, value);
  calls.hasProgress = true;
  calls.host.restart();
  return value;
}

/** The call waits for a later invocation. It never comes to its end, so it gives back its place in `active` here. */
export function pause(calls: StepCalls, paused: PausedCall): Promise<never> {
  calls.paused.push(paused);
  calls.active--;
  suspendIfIdle(calls);
  return never();
}

/** A branch of the handler that has just got a value may begin its next step first. */
function suspendIfIdle(calls: StepCalls): void {
  const { host, paused } = calls;
  if (calls.active > 0 || paused.length === 0) return;
  host.clock.setTimer(0, () => {
    if (calls.active > 0 || host.signal.aborted) return;
    host.end(new Suspension(outcomeOfPause(paused, host.clock.nowMs())));
  });
}

/** Of several signals and groups of jobs, the job waits for the first. When that has come, it waits for the next. */
function outcomeOfPause(paused: readonly PausedCall[], nowMs: number): Outcome {
  const untilMs = Math.min(...paused.map((call) => call.untilMs ?? Number.POSITIVE_INFINITY));
  if (untilMs <= nowMs) return { kind: "release" };
  const seconds = Number.isFinite(untilMs) ? (untilMs - nowMs) / 1000 : undefined;
  const first = paused.find((call) => call.for)?.for;
  return first
    ? { kind: "suspend", wait: { ...first, seconds } }
    : { kind: "snooze", retryInSeconds: seconds ?? 0 };
}

/** By the local clock, which may be set back meanwhile. */
export function msSince({ clock }: StepHost, beganMs: number): number {
  return Math.max(0, clock.nowMs() - beganMs);
}

export function never(): Promise<never> {
  return new Promise(() => {});
}
