// checkpoint: stores what durable steps of running jobs have returned, and reads it back. See
// migrations/functions/checkpoint.sql.
import type { LeaseRef, NewStep, StepValues } from "../job.ts";
import { type JobStep, type StepRow, toJobSteps } from "../job-steps.ts";
import { sql } from "./sql.ts";
import { one, type Statement } from "./statement.ts";

/** What became of the steps of one job. */
export interface Checkpointed {
  cancelRequested: boolean;
  /** The sleeps, with the time when each is over, and the steps that were stored before with what they returned then. */
  steps: StepValues;
}

/** Answers in the order of the jobs, null where the lease is lost. */
export function checkpoint(
  checkpoints: readonly { job: LeaseRef; steps: readonly NewStep[] }[],
  { seconds }: { seconds: number },
): Statement<(Checkpointed | null)[]> {
  return {
    name: "checkpoint",
    isRepeatable: true, // the first value of a step stays
    build: (schema) => sql`
      select ${schema}.checkpoints(
        ${checkpoints.map(({ job }) => job.id)}::uuid[],
        ${checkpoints.map(({ job }) => job.leaseKey)}::uuid[],
        ${JSON.stringify(checkpoints.map(({ steps }) => steps))}::jsonb,
        ${seconds}::float8
      ) as answers`,
    decode: one((row) => ((row.answers ?? []) as Answer[]).map(decodeAnswer)),
  };
}

type Answer = { cancel_requested: boolean; steps: StepValues } | null;

function decodeAnswer(answer: Answer): Checkpointed | null {
  return answer && { cancelRequested: answer.cancel_requested, steps: answer.steps };
}

/** For one job over HTTP. Without steps it answers with all that are stored. Null if the lease is lost. */
export function checkpointOne(
  job: LeaseRef,
  steps: readonly NewStep[],
  { seconds }: { seconds: number },
): Statement<(Checkpointed & { nowMs: number }) | null> {
  return {
    name: "checkpoint one",
    isRepeatable: true,
    build: (schema) => sql`
      select ${schema}.checkpoint(
               ${job.id}::uuid, ${job.leaseKey}::uuid, ${JSON.stringify(steps)}::jsonb, ${seconds}::float8) as answer,
             case when ${steps.length === 0}::boolean
                  then coalesce(${schema}.steps_of(array[${job.id}::uuid]) -> ${job.id}::text, '{}') end as stored,
             extract(epoch from clock_timestamp())::float8 * 1000 as now_ms`,
    decode: one((row) => {
      const answer = decodeAnswer(row.answer as Answer);
      const steps = (row.stored as StepValues | null) ?? answer?.steps ?? {};
      const nowMs = Number(row.now_ms);
      return answer && { ...answer, steps, nowMs };
    }),
  };
}

export interface StoredSteps {
  /** By the job's id. A job without stored steps is left out. */
  byJob: Record<string, StepValues>;
  /** The time of the database. */
  nowMs: number;
}

export function findSteps(ids: readonly string[]): Statement<StoredSteps> {
  return {
    name: "find steps",
    isRepeatable: true,
    build: (schema) => sql`
      select ${schema}.steps_of(${ids}::uuid[]) as steps,
             extract(epoch from clock_timestamp())::float8 * 1000 as now_ms`,
    decode: one((row) => ({
      byJob: (row.steps ?? {}) as unknown as Record<string, StepValues>,
      nowMs: Number(row.now_ms),
    })),
  };
}

/** The steps of one job with their times, for people. */
export function listSteps(id: string): Statement<JobStep[]> {
  return {
    name: "list steps",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.step_list(${id}::uuid) as steps`,
    decode: one((row) => toJobSteps(row.steps as unknown as StepRow[])),
  };
}
