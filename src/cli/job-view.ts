// How jobs are shown: one for each line of a table, or one with all that is known about it.
import type { JobResponse } from "../contract/jobs.ts";
import type { Column, Output } from "./output/output.ts";
import { between, firstLine } from "./output/words.ts";

export const jobColumns: readonly Column<JobResponse>[] = [
  ["JOB", (job) => job.job_id],
  ["TYPE", (job) => job.type],
  ["QUEUE", (job) => job.queue],
  ["STATUS", (job) => job.status],
  ["ATTEMPTS", (job) => `${job.attempts}/${job.max_attempts}`],
  ["CREATED", (job) => job.created_at],
  ["ERROR", (job) => firstLine(job.error)],
];

export const deadColumns: readonly Column<JobResponse>[] = [
  ["JOB", (job) => job.job_id],
  ["TYPE", (job) => job.type],
  ["QUEUE", (job) => job.queue],
  ["REASON", (job) => job.dead_reason],
  ["ATTEMPTS", (job) => `${job.attempts}/${job.max_attempts}`],
  ["CREATED", (job) => job.created_at],
  ["ERROR", (job) => firstLine(job.error)],
];

export function showJob(job: JobResponse, out: Output): void {
  const { errors, waiting_for: waiting, ...fields } = job;
  const isSet = ([, value]: [string, unknown]) =>
    value !== null && value !== undefined && !(Array.isArray(value) && value.length === 0);
  out.fields({
    ...Object.fromEntries(Object.entries(fields).filter(isSet)),
    ...(waiting && { waiting_for: `${waiting.kind}: ${waiting.detail}` }),
    ...(job.completed_at && { duration: between(job.started_at, job.completed_at) }),
  });
  for (const { attempt, at, worker, message, stack } of errors) {
    const by = worker ? ` (${worker})` : "";
    out.fields({ [`attempt ${attempt}`]: `${at}${by} ${firstLine(message)}` });
    if (out.isTerminal && stack) for (const line of stack.split("\n").slice(1)) out.fields({ "": line });
  }
}
