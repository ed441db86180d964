// The jobs of one drain whose handlers run, and those that wait behind them in their runs. Starts handlers, collects their
// outcomes, and lets the drain wait for them.
import { LeaseLostError } from "../../core/errors.ts";
import type { ClaimedJob, Outcome } from "../../core/job.ts";
import type { JobType, Ports } from "../ports.ts";
import { type EndedJob, type JobRun, releaseRun, runsOf, toRun } from "./job-runs.ts";
import { callHandler, type HandlerCall } from "./run-job.ts";
import type { DrainSteps } from "./step-host.ts";

export interface RunningJobs {
  readonly ports: Ports;
  /** The end of the invocation. */
  readonly endMs: number;
  /** Whether a handler of this type has the time to run now. */
  readonly canStart: (type: JobType) => boolean;
  readonly steps: DrainSteps;
  readonly series: Set<CallSeries>;
  readonly ended: EndedJob[];
  /** Jobs that must not start or go on: their lease is lost, or somebody cancelled them. */
  readonly stoppedIds: Set<string>;
  wake(): void;
}

/** Calls of one handler, one after another. Each call takes the first job of every run, so a single type has one run here. */
interface CallSeries {
  readonly type: JobType;
  runs: readonly JobRun[];
  call: HandlerCall | null;
}

export function createRunningJobs(
  ports: Ports,
  options: Pick<RunningJobs, "endMs" | "canStart" | "steps">,
): RunningJobs {
  return { ports, ...options, series: new Set(), ended: [], stoppedIds: new Set(), wake() {} };
}

/** Those that wait in their runs too, because this drain holds them under leases. */
export function listJobs({ series }: RunningJobs): ClaimedJob[] {
  return [...series].flatMap(({ runs }) => runs.flatMap(({ first, rest }) => [first, ...rest]));
}

export function startJobs(running: RunningJobs, type: JobType, jobs: readonly ClaimedJob[]): void {
  for (const { id } of jobs) running.stoppedIds.delete(id); // it may be claimed again after its lease was lost
  const runs = runsOf(jobs);
  if (type.work.kind === "batch") workThrough(running, type, runs);
  else for (const run of runs) workThrough(running, type, [run]);
}

/** Never rejects. Runs that no longer fit into the drain's time go back to the queue. */
async function workThrough(running: RunningJobs, type: JobType, runs: readonly JobRun[]): Promise<void> {
  const { ports } = running;
  const series: CallSeries = { type, runs, call: null };
  running.series.add(series);
  while (series.runs.length > 0) {
    const giveBack = needsConnection(type) ? await ports.connections.take() : undefined;
    // A job may have waited long for a connection. Its time-out starts with its handler.
    series.runs = series.runs.flatMap((run) => endStopped(running, run));
    const canStart = series.runs.length > 0 && running.canStart(type);
    if (canStart) await callOnce(running, series);
    giveBack?.();
    if (!canStart) break;
  }
  running.series.delete(series);
  running.ended.push(...series.runs.map(releaseRun));
  running.wake();
}

async function callOnce(running: RunningJobs, series: CallSeries): Promise<void> {
  const jobs = series.runs.map(({ first }) => first);
  const startedMs = running.ports.clock.nowMs();
  series.call = callHandler(running.ports, series.type, jobs, running);
  const outcomes = await series.call.outcomes;
  const ms = running.ports.clock.nowMs() - startedMs;
  series.runs = series.runs.flatMap((run, index) => endFirst(running, run, { outcome: outcomes[index], ms }));
  running.wake();
}

function needsConnection({ work }: JobType): boolean {
  return work.kind === "single" && work.needsConnection === true;
}

/** Answers with the run, unless its first job was stopped before its turn came. */
function endStopped(running: RunningJobs, run: JobRun): JobRun[] {
  return running.stoppedIds.has(run.first.id) ? endFirst(running, run) : [run];
}

/** Answers with the rest of the run, if it goes on. */
function endFirst(
  { ended }: RunningJobs,
  { first, rest }: JobRun,
  { outcome = { kind: "release" }, ms }: { outcome?: Outcome | undefined; ms?: number } = {},
): JobRun[] {
  const goesOn = outcome.kind === "complete";
  ended.push({ job: first, outcome, rest: goesOn ? [] : rest, ...(ms !== undefined && { ms }) });
  return goesOn ? toRun(rest) : [];
}

/** What has ended since the last call. */
export function takeEnded({ ended }: RunningJobs): EndedJob[] {
  return ended.splice(0);
}

/** Until another job has ended, all have, or the time is over. */
export function waitForAny(running: RunningJobs, ms: number): Promise<void> {
  const before = running.ended.length;
  return wait(running, ms, () => running.ended.length > before);
}

/** Until all jobs have ended or the time is over. */
export function waitForAll(running: RunningJobs, ms: number): Promise<void> {
  return wait(running, ms, () => false);
}

async function wait(running: RunningJobs, ms: number, isEnough: () => boolean): Promise<void> {
  const { clock } = running.ports;
  const untilMs = clock.nowMs() + ms;
  while (running.series.size > 0 && !isEnough() && clock.nowMs() < untilMs) {
    const woken = Promise.withResolvers<void>();
    running.wake = woken.resolve;
    const cancel = clock.setTimer(untilMs - clock.nowMs(), woken.resolve);
    await woken.promise;
    cancel();
  }
}

/** Stops the handlers of these jobs, and does not start those that wait. */
export function abortJobs(
  { series, stoppedIds }: RunningJobs,
  jobs: readonly ClaimedJob[],
  reason: Error = new LeaseLostError("the lease is lost"),
): void {
  if (jobs.length === 0) return;
  for (const { id } of jobs) stoppedIds.add(id);
  for (const { runs, call } of series) {
    // A batch goes on for its other jobs.
    if (runs.every(({ first }) => stoppedIds.has(first.id))) call?.abort(reason);
  }
}
