// The public face of the library. What is not exported here is not public.
import { neonDatabase } from "./edge/neon/neon-transport.ts";
import { createSluice, type SluiceOptions, type SluiceWorker } from "./edge/sluice.ts";

export {
  CancelledError,
  type ErrorCode,
  FatalError,
  type Fault,
  LeaseLostError,
  RetryableError,
  SluiceError,
  Snooze,
} from "./core/errors.ts";
export type { Json, Payload } from "./core/job.ts";
export { Next } from "./core/next.ts";
export type { Backoff } from "./core/policy/backoff.ts";
export type { StandardSchema } from "./core/standard-schema.ts";
export type { Blocker, Blockers, JobId, OutputOf, Outputs, PayloadOf, Slots } from "./core/typed-job.ts";
export type { Crons, SluiceOptions, SluiceWorker } from "./edge/sluice.ts";
export {
  defineJob,
  definePulledJob,
  type HandlerResult,
  type JobDefinition,
  type JobOptions,
} from "./jobs/define.ts";
export { type BatchAnswer, type BatchItem, defineBatchJob } from "./jobs/define-batch.ts";
export { definePushedJob, type PushedJobOptions } from "./jobs/define-pushed.ts";
export { defineQueue, type QueueDefinition, type QueueOptions } from "./jobs/define-queue.ts";
export { defineReconciledJob, type Observation } from "./jobs/define-reconciled.ts";
export { defineSchedule, type ScheduleDefinition, type ScheduleOptions } from "./jobs/define-schedule.ts";
export { defineSignal, type SignalDefinition } from "./jobs/define-signal.ts";
export { defineType, type PayloadSchema, type TypeDefinition } from "./jobs/define-type.ts";
export type { FlowContext, NextOptions } from "./jobs/flow-context.ts";
export type { TypeOptions } from "./jobs/type-options.ts";
export type { HandlerContext, WorkerEnv } from "./jobs/worker-env.ts";
export type { Log } from "./queue/ports.ts";
export type { ChildOutcome, Step, StepOptions } from "./queue/steps/step.ts";

/** The Worker: `export default sluice({ jobs })`. */
export function sluice({ database, ...options }: SluiceOptions): SluiceWorker {
  return createSluice([...(database ? [database] : []), neonDatabase], options);
}
