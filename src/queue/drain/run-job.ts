// Runs the handler of a claimed job, or of a batch of jobs, and answers with the outcome of each. It never throws:
// whatever a handler does is an outcome. It does not wait for a handler that ignores its signal.
import { FatalError, RetryableError } from "../../core/errors.ts";
import { type ClaimedJob, generationOf, type Outcome } from "../../core/job.ts";
import { completionOf } from "../../core/next.ts";
import { blockersOf } from "../blockers.ts";
import type { HandlerContext, JobType, Log, Ports, RunningJob } from "../ports.ts";
import { createStep } from "../steps/create-step.ts";
import type { Step } from "../steps/step.ts";
import type { StepHost } from "../steps/step-calls.ts";
import { outcomeOf } from "./outcome.ts";
import { createStepHost, type DrainSteps } from "./step-host.ts";
import { withStorableOutput } from "./storable.ts";

/** A handler that runs, for a single job or for a batch that shares one signal and one time-out. */
export interface HandlerCall {
  /** One for each job, in order. Never rejects. */
  readonly outcomes: Promise<readonly Outcome[]>;
  abort(reason: Error): void;
}

export function callHandler(
  ports: Ports,
  type: JobType,
  jobs: readonly ClaimedJob[],
  { endMs: hardEndMs, steps }: { endMs: number; steps: DrainSteps },
): HandlerCall {
  const abortion = new AbortController();
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => {}); // nobody may be waiting any more
  const abort = (reason: Error) => {
    abortion.abort(reason);
    ended.reject(reason);
  };
  const timer = startTimeout(ports, type, { hardEndMs, abort });
  const toRunning = async (job: ClaimedJob): Promise<RunningJob> => ({
    payload: job.payload,
    errors: job.errors,
    blockers: await blockersOf(ports, job),
    context: contextOf(ports, job, { signal: abortion.signal, extend: timer.restart }, () =>
      type.work.kind === "single"
        ? createStepHost(ports, steps, {
            ...{ job, type, signal: abortion.signal },
            ...{ restart: timer.restart, end: abort },
          })
        : refuseSteps(type),
    ),
    ports,
  });
  const run = async () => runWork(type, jobs, await Promise.all(jobs.map(toRunning)));
  const outcomes = Promise.race([run(), ended.promise])
    .catch((error) => jobs.map(() => outcomeOf(error)))
    .then((outcomes) => outcomes.map(withStorableOutput))
    .finally(timer.stop);
  return { outcomes, abort };
}

/** Starts the type's time-out, and starts it anew when the handler asks. It never reaches past the hard end. */
function startTimeout(
  ports: Ports,
  type: JobType,
  { hardEndMs, abort }: { hardEndMs: number; abort(reason: Error): void },
) {
  let cancel = () => {};
  const restart = () => {
    cancel();
    const ms = Math.min(type.timeoutSeconds * 1000, hardEndMs - ports.clock.nowMs());
    const timedOut = () => abort(new RetryableError(`timed out after ${type.timeoutSeconds} s`));
    cancel = ports.clock.setTimer(ms, timedOut);
  };
  restart();
  return { restart, stop: () => cancel() };
}

async function runWork(
  type: JobType,
  jobs: readonly ClaimedJob[],
  running: readonly RunningJob[],
): Promise<readonly Outcome[]> {
  const [only] = running;
  if (type.work.kind === "single" && only) return [completionOf(await type.work.run(only))];
  if (type.work.kind !== "batch") return jobs.map(() => ({ kind: "release" }));
  const outcomes = await type.work.run(running);
  if (outcomes.length !== jobs.length) {
    throw new Error(`the handler of "${type.type}" answered for ${outcomes.length} of ${jobs.length} jobs`);
  }
  return outcomes;
}

/** All jobs of a batch share one attempt, so none of them can be suspended by itself. */
function refuseSteps({ type }: JobType): never {
  throw new FatalError(`"${type}" is not defined by defineJob: only its handlers can use durable steps`);
}

function contextOf(
  ports: Ports,
  job: ClaimedJob,
  { signal, extend }: Pick<HandlerContext, "signal" | "extend">,
  toStepHost: () => StepHost,
): HandlerContext {
  let step: Step | undefined;
  const { id: jobId, type, attempt, maxAttempts, leaseKey, traceparent, schedule } = job;
  return {
    jobId,
    attempt,
    maxAttempts,
    leaseGeneration: generationOf(leaseKey),
    leaseKey,
    traceparent,
    schedule: schedule && { ...schedule, slot: new Date(schedule.slot) },
    signal,
    extend,
    log: logOf(ports.log, { job_id: jobId, type, attempt }),
    env: ports.env,
    get step() {
      step ??= createStep(toStepHost());
      return step;
    },
  };
}

/** Adds the job to every line that its handler writes. */
function logOf(log: Log, job: Record<string, unknown>): Log {
  return {
    info: (event, fields) => log.info(event, { ...fields, ...job }),
    warn: (event, fields) => log.warn(event, { ...fields, ...job }),
    error: (event, fields) => log.error(event, { ...fields, ...job }),
  };
}
