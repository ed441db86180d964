// enqueue: 1 to 10,000 jobs in one statement, all or none. See migrations/functions/enqueue.sql.
import { type SQL, sql } from "drizzle-orm";
import { type JobStatus, type NewJob, timeOfId } from "../job.ts";
import { one, type Statement } from "./statement.ts";

export interface EnqueuedJob {
  id: string;
  status: JobStatus;
  type: string;
  queue: string;
  scheduledAt: Date;
  deduplicated: boolean;
}

/** Of jobs that are alike only the id: they are new and due now. */
type Answer = string | { id: string; status: JobStatus; scheduled_ms: number; deduplicated: boolean };

/** One row, with the jobs in the order in which they were given: to read a row costs more than to read a job. */
export function enqueue(jobs: readonly NewJob[]): Statement<EnqueuedJob[]> {
  return {
    name: "enqueue",
    isRepeatable: jobs.every((job) => job.idempotencyKey),
    build,
    values: { jobs: JSON.stringify(requestOf(jobs)) },
    decode: one((row) => {
      const answers = (row.answers ?? []) as readonly Answer[];
      return jobs.flatMap((job, index) => {
        const answer = answers[index];
        return answer === undefined ? [] : enqueuedJob(job, answer);
      });
    }),
  };
}

function build(schema: SQL): SQL {
  return sql`select ${schema}.enqueue_jobs(${sql.placeholder("jobs")}::jsonb) as answers`;
}

/** Jobs that are alike but for their payloads go as one object, what they share once. */
function requestOf(jobs: readonly NewJob[]) {
  const [first] = jobs;
  if (!first || !jobs.every((job) => isPlain(job) && isLike(job, first))) return jobs.map(toRow);
  return { ...toRow(first), payload: undefined, payloads: jobs.map((job) => job.payload) };
}

/** Due at once, and its id says the rest. */
function isPlain({ delaySeconds, scheduledAt, expiresAt, idempotencyKey, tags }: NewJob): boolean {
  return (delaySeconds ?? scheduledAt ?? expiresAt ?? idempotencyKey ?? null) === null && !tags?.length;
}

function isLike(job: NewJob, other: NewJob): boolean {
  return (
    job.type === other.type &&
    job.queue === other.queue &&
    job.priority === other.priority &&
    job.maxAttempts === other.maxAttempts &&
    job.partitionKey === other.partitionKey &&
    job.traceparent === other.traceparent
  );
}

function enqueuedJob(job: NewJob, answer: Answer): EnqueuedJob {
  const { type, queue } = job;
  const common = { type, queue: queue ?? "default" };
  if (typeof answer === "string")
    return { ...common, id: answer, status: "pending", scheduledAt: timeOfId(answer), deduplicated: false };
  const { scheduled_ms, ...told } = answer;
  return { ...common, ...told, scheduledAt: new Date(scheduled_ms) };
}

function toRow(job: NewJob) {
  return {
    type: job.type,
    payload: job.payload,
    queue: job.queue,
    priority: job.priority,
    max_attempts: job.maxAttempts,
    delay_seconds: job.delaySeconds,
    scheduled_at: job.scheduledAt,
    expires_at: job.expiresAt,
    idempotency_key: job.idempotencyKey,
    partition_key: job.partitionKey,
    traceparent: job.traceparent,
    tags: job.tags,
  };
}
