// A job as the view `jobs` shows it, in the columns of a row or in the JSON answer of a statement that changed it.
import type { Job } from "./job.ts";
import type { JobStep } from "./job-steps.ts";
import type { WaitingReason } from "./policy/waiting-for.ts";
import { decodeColumns } from "./sql/columns.ts";
import { jobs } from "./sql/schema.ts";

/** What a statement about one job answers. */
export interface ChangedJob {
  /** False if the job's state does not allow the change, or if the lease is lost. */
  applied: boolean;
  /** As it is now, with the stacks and causes of its errors. */
  job: Job;
  /** Null unless the job is processing. */
  leaseExpiresAt: Date | null;
  /** The job was asked to stop. Only cancel and extend tell it. */
  cancelRequested: boolean;
}

const { leaseExpiresAt, ...jobColumns } = jobs;

export { jobColumns };

const decodeColumnsOfJob = decodeColumns(jobColumns);
const decodeLease = decodeColumns({ leaseExpiresAt });

interface Answer {
  applied: boolean;
  job: Record<string, unknown>;
  cancel_requested?: boolean;
}

/** The answer of answer_with_job (migrations/functions/jobs.sql). Null if there is no such job. */
export function decodeChangedJob(answer: unknown): ChangedJob | null {
  if (answer === null) return null;
  const { applied, job, cancel_requested } = answer as Answer;
  return { applied, job: decodeJob(job), ...decodeLease(job), cancelRequested: cancel_requested === true };
}

export function decodeJob(row: Record<string, unknown>): Job {
  const job = decodeColumnsOfJob(row);
  return { ...job, tags: job.tags ?? [] };
}

/** Of a job that is listed for people: without what may be large or secret. */
const { payload: _, output: __, ...listedColumns } = jobColumns;

export { listedColumns };

const decodeListedColumns = decodeColumns(listedColumns);

export function decodeListed(row: Record<string, unknown>): Omit<Job, "payload" | "output"> {
  const job = decodeListedColumns(row);
  return { ...job, tags: job.tags ?? [] };
}

export interface FoundJob extends Job {
  /** Null if the job is neither pending nor blocked. */
  waitingFor: WaitingReason | null;
  /** Its durable steps. */
  steps: JobStep[];
}

export function decodeReason(json: unknown): WaitingReason | null {
  if (json === null) return null;
  const { job_ids, fair_key, is_isolated, ...rest } = json as Record<string, unknown>;
  const renamed = { jobIds: job_ids, fairKey: fair_key, isIsolated: is_isolated };
  const present = Object.entries(renamed).filter(([, value]) => value !== undefined);
  return { ...rest, ...Object.fromEntries(present) } as WaitingReason;
}
