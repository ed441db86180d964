// Runs a job type's handler directly, as a drain does, with a context that a test can read.
import type { JobError, Json, Outcome, Payload } from "../../src/core/job.ts";
import type { Next } from "../../src/core/next.ts";
import { systemClock } from "../../src/edge/system-clock.ts";
import type { HandlerContext, JobType, RunningJob } from "../../src/queue/ports.ts";
import { noLease } from "./jobs.ts";

const refuse = () => Promise.reject(new Error("this test has no durable steps"));

export function testContext(fields: Partial<HandlerContext> = {}): HandlerContext {
  const quiet = { info() {}, warn() {}, error() {} };
  return {
    jobId: "019a0000-0000-7000-8000-000000000000",
    attempt: 1,
    maxAttempts: 5,
    leaseGeneration: "1",
    leaseKey: noLease,
    signal: new AbortController().signal,
    traceparent: null,
    schedule: null,
    log: quiet,
    env: {},
    extend() {},
    step: { run: refuse, sleep: refuse, waitFor: refuse, all: refuse },
    ...fields,
  };
}

const ports = {
  clock: systemClock,
  sender: { send: () => Promise.reject(new Error("this test sends nothing")) },
};

export function runSingle(
  type: JobType,
  payload: Payload,
  context = testContext(),
  blockers: RunningJob["blockers"] = {},
): Promise<Json | Next> {
  if (type.work.kind !== "single") throw new Error(`"${type.type}" does not run single jobs`);
  return type.work.run({ payload, context, errors: [], blockers, ports });
}

export function runBatch(
  type: JobType,
  payloads: readonly Payload[],
  { errors = [], ...fields }: Partial<HandlerContext> & { errors?: JobError[] } = {},
): Promise<readonly Outcome[]> {
  if (type.work.kind !== "batch") throw new Error(`"${type.type}" does not run batches`);
  return type.work.run(
    payloads.map((payload) => ({ payload, context: testContext(fields), errors, blockers: {}, ports })),
  );
}
