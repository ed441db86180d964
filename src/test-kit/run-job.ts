// runJob: runs one attempt of a job, as a drain does, without a database. Its durable steps are kept in memory.
import { SluiceError } from "../core/errors.ts";
import type { ClaimedJob, Json, NewJob, NewStep, Outcome, Payload, StepValues, Wait } from "../core/job.ts";
import { withRetryTime } from "../core/policy/attempt-end.ts";
import type { Blocker, OutputOf, Outputs, PayloadOf, SlotsOf } from "../core/typed-job.ts";
import { systemClock } from "../edge/system-clock.ts";
import { createSender } from "../edge/webhook-sender.ts";
import type { JobDefinition } from "../jobs/define.ts";
import { newJob } from "../jobs/flow-context.ts";
import { createRegistry } from "../jobs/registry.ts";
import type { WorkerEnv } from "../jobs/worker-env.ts";
import { callHandler } from "../queue/drain/run-job.ts";
import type { StepStore } from "../queue/drain/step-store.ts";
import { createConnections } from "../queue/outgoing/connections.ts";
import type { Log, Ports } from "../queue/ports.ts";

export interface RunJobOptions<Job = unknown> {
  /** The Worker's bindings. Default: none. */
  env?: WorkerEnv | object;
  /** Default 1. The last attempt of a type ends as "dead" if it fails. */
  attempt?: number;
  jobId?: string;
  tags?: readonly string[];
  /** The outputs of the jobs that it waited for, by slot. */
  outputs?: Outputs<SlotsOf<Job>>;
  /** What durable steps have stored before: `steps` of an earlier outcome. */
  steps?: StepValues;
  /** The time for durable steps. Default: now. */
  now?: Date;
  /** Where the handler's log goes. Default: nowhere. */
  log?: Log;
}

/** How the attempt ended. `steps` is what durable steps have stored. */
export type JobOutcome<Output = unknown> = { steps: StepValues } & (
  | { status: "completed"; output: Output }
  | { status: "continued"; next: NewJob }
  | { status: "retried"; message: string; retryInSeconds: number }
  | { status: "dead"; reason: "fatal" | "exhausted"; message: string }
  | { status: "snoozed"; seconds: number }
  | { status: "suspended"; wait: Wait }
  | { status: "released" }
);

const quiet: Log = { info() {}, warn() {}, error() {} };
const anId = "019a0000-0000-7000-8000-000000000000";
const aLeaseKey = "00000000-0000-8001-8000-000000000000";
const hourMs = 3_600_000;

/** A payload that does not fit is refused, as by an enqueue. A time-out of the type counts, by the real clock. */
export async function runJob<Job extends JobDefinition>(
  job: Job,
  payload: PayloadOf<Job>,
  options: RunJobOptions<Job> = {},
): Promise<JobOutcome<OutputOf<Job>>> {
  if (job.work.kind === "pulled") throw new TypeError(`"${job.type}" has no handler in the Worker`);
  const { attempt = 1, env = {}, log = quiet, now = new Date() } = options;
  const stored = JSON.parse(JSON.stringify(newJob(job, payload, {}).payload)) as Payload;
  const claimed = claimedJob(job, stored, { ...options, attempt });
  const steps: StepValues = { ...options.steps };
  const call = callHandler(createPorts(job, { env, log }), job, [claimed], {
    endMs: Date.now() + hourMs,
    steps: { store: stepsInMemory(steps, now), hasRoom: () => true },
  });
  const [outcome] = await call.outcomes;
  if (!outcome) throw new Error("the handler gave no outcome");
  const timed = withRetryTime(outcome, { attempt, backoff: job.backoff, random: 0 });
  return { steps, ...toOutcome(timed, { isLast: attempt >= job.maxAttempts }) } as JobOutcome<OutputOf<Job>>;
}

function toOutcome(outcome: Outcome, { isLast }: { isLast: boolean }): object {
  switch (outcome.kind) {
    case "complete":
      return outcome.next
        ? { status: "continued", next: outcome.next }
        : { status: "completed", output: outcome.output };
    case "retry":
      return isLast
        ? { status: "dead", reason: "exhausted", message: outcome.message }
        : { status: "retried", message: outcome.message, retryInSeconds: outcome.retryInSeconds };
    case "bury":
      return { status: "dead", reason: "fatal", message: outcome.message };
    case "snooze":
      return { status: "snoozed", seconds: outcome.retryInSeconds };
    case "suspend":
      return { status: "suspended", wait: outcome.wait };
    case "release":
      return { status: "released" };
  }
}

function claimedJob(job: JobDefinition, payload: Payload, options: RunJobOptions): ClaimedJob {
  const { attempt = 1, jobId = anId, tags = [], outputs = {} } = options;
  return {
    id: jobId,
    leaseKey: aLeaseKey,
    type: job.type,
    payload,
    attempt,
    maxAttempts: job.maxAttempts,
    abandonments: 0,
    leaseExpiresAt: new Date(Date.now() + hourMs),
    priority: 0,
    createdAt: new Date(),
    partitionKey: null,
    fairKey: null,
    runKey: null,
    mayRelease: false,
    isLinked: false,
    traceparent: null,
    tags: [...tags],
    errors: [],
    blockers: blockersWith(outputs),
    schedule: null,
    isProbe: false,
    isTrial: false,
    stored: null,
  };
}

function blockersWith(outputs: object): Record<string, Blocker[]> {
  const completed = (output: unknown): Blocker => ({ jobId: anId, status: "completed", output });
  return Object.fromEntries(
    Object.entries(outputs).map(([slot, given]) => [slot, [given].flat().map(completed)]),
  );
}

function createPorts(job: JobDefinition, { env, log }: { env: object; log: Log }): Ports {
  const refusal = "runJob has no database: use createTestQueue for signals and for children";
  return {
    db: { run: () => Promise.reject(new SluiceError("database_unavailable", refusal)) },
    clock: systemClock,
    random: () => 0,
    log,
    sender: createSender({ allowPrivate: true }),
    connections: createConnections(),
    hasClock: false,
    registry: createRegistry([job]),
    env,
    wakeIn: () => {},
  };
}

function stepsInMemory(steps: StepValues, now: Date): StepStore {
  const nowMs = now.getTime();
  const stored = (step: NewStep): Json => ("value" in step ? step.value : nowMs + step.seconds * 1000);
  return {
    read: async () => ({ steps: { ...steps }, nowMs }),
    write: async (_, step) => {
      steps[step.name] ??= stored(step);
      return { steps: { [step.name]: steps[step.name] as Json }, cancelRequested: false };
    },
  };
}
