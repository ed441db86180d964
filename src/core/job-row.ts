// A job as the view `jobs` shows it, in the columns of a row or in the JSON answer of a statement that changed it.
import { getTableColumns } from "drizzle-orm";
import type { Job } from "./job.ts";
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

const { leaseExpiresAt, ...jobColumns } = getTableColumns(jobs);

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

const { payload: _, output: __, ...listed } = jobColumns;
/** Those of a job in a list for people. */
export const listedColumns = listed;
const decodeListedColumns = decodeColumns(listedColumns);

export function decodeListed(row: Record<string, unknown>): Omit<Job, "payload" | "output"> {
  const job = decodeListedColumns(row);
  return { ...job, tags: job.tags ?? [] };
}
