// advance dead runs, advance dead run: a step of a run over dead letters. See migrations/functions/advance-dead-runs.sql.
import type { Skip } from "../dead-letters.ts";
import type { Payload } from "../job.ts";
import { sql } from "./sql.ts";
import { one, type Statement } from "./statement.ts";

/** The next jobs of a run with a patch, as they would be. */
export interface PatchedJobs {
  /** Comes back as it is, with the skips. */
  ahead: Record<string, unknown>;
  type: string;
  jobs: { id: string; payload: Payload; fault: string | null }[];
}

export interface RunStep {
  runId: string;
  /** The queues that got jobs. */
  queues: string[];
  /** Not null: nothing is done yet. These jobs have to be checked. */
  check: PatchedJobs | null;
}

interface StepRow {
  run_id: number;
  queues: string[];
  check: ({ type: string; jobs: PatchedJobs["jobs"] } & Record<string, unknown>) | null;
}

function decodeStep(step: unknown): RunStep | null {
  if (step === null) return null;
  const { run_id, queues, check } = step as StepRow;
  if (check === null) return { runId: String(run_id), queues, check };
  const { jobs, type, ...ahead } = check;
  return { runId: String(run_id), queues, check: { ahead, type, jobs } };
}

/** Takes a step of a run that may go on. `seconds`: how long until somebody comes again. Null: there is no such run. */
export function advanceDeadRuns({ seconds }: { seconds: number }): Statement<RunStep | null> {
  return {
    name: "advance dead runs",
    isRepeatable: true, // a second step goes on after the first
    build: (schema) => sql`select ${schema}.advance_dead_runs(${seconds}::float8) as step`,
    decode: one((row) => decodeStep(row.step)),
  };
}

/** The step of a run with a patch, after the check. Null: somebody else has taken it, or the run has ended. */
export function advanceDeadRun(
  runId: string,
  { seconds, ahead, skips }: { seconds: number; ahead: PatchedJobs["ahead"]; skips: readonly Skip[] },
): Statement<RunStep | null> {
  const checked = { ...ahead, skips: skips.map(({ jobId, reason }) => ({ job_id: jobId, reason })) };
  return {
    name: "advance dead run",
    isRepeatable: true, // a second one finds that the run has gone on
    build: (schema) => sql`
      select ${schema}.advance_dead_run(
        ${runId}::bigint, ${seconds}::float8, ${JSON.stringify(checked)}::jsonb
      ) as step`,
    decode: one((row) => decodeStep(row.step)),
  };
}
