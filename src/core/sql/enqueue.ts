// enqueue: new jobs, all or none, in one statement. The Worker calls enqueue_jobs, which takes any batch as JSON. An app
// that enqueues in its own transaction may only call enqueue and enqueue_many. See migrations/functions/enqueue.sql.
import { type SQL, sql } from "drizzle-orm";
import { SluiceError } from "../errors.ts";
import { type JobStatus, type NewJob, type Payload, timeOfId } from "../job.ts";
import { hasValue, haveEqualOptions, type JobOptions, optionList, toFields } from "../job-options.ts";
import { many, one, type Statement } from "./statement.ts";

export interface EnqueuedJob {
  id: string;
  status: JobStatus;
  type: string;
  queue: string;
  scheduledAt: Date;
  deduplicated: boolean;
}

/** Only the id for a job that is new and due now. */
type Answer = string | { id: string; status: JobStatus; scheduled_ms: number; deduplicated: boolean };

/** 1 to 10,000 jobs. The answer is one row, with the jobs in the order of the call. */
export function enqueue(jobs: readonly NewJob[]): Statement<EnqueuedJob[]> {
  return {
    name: "enqueue",
    isRepeatable: jobs.every((job) => job.idempotencyKey),
    build: buildEnqueue,
    values: { jobs: JSON.stringify(toRequest(jobs)) },
    decode: one((row) => decodeAnswers(jobs, (row.answers ?? []) as readonly Answer[])),
  };
}

function buildEnqueue(schema: SQL): SQL {
  return sql`select ${schema}.enqueue_jobs(${sql.placeholder("jobs")}::jsonb) as answers`;
}

/** Options that all jobs share are sent once. */
function toRequest(jobs: readonly NewJob[]): object {
  const [first] = jobs;
  if (!first || !jobs.every((job) => job.type === first.type && haveEqualOptions(job, first)))
    return jobs.map((job) => ({ type: job.type, payload: job.payload, ...toFields(job) }));
  return { type: first.type, ...toFields(first), payloads: jobs.map((job) => job.payload) };
}

function decodeAnswers(jobs: readonly NewJob[], answers: readonly Answer[]): EnqueuedJob[] {
  return jobs.map(({ type, queue }, index) => {
    const answer = answers[index];
    if (answer === undefined) throw new SluiceError("internal", "the enqueue returned no job");
    return { type, queue: queue ?? "default", ...decodeAnswer(answer) };
  });
}

function decodeAnswer(answer: Answer): Omit<EnqueuedJob, "type" | "queue"> {
  if (typeof answer === "string")
    return { id: answer, status: "pending", scheduledAt: timeOfId(answer), deduplicated: false };
  const { scheduled_ms, ...fields } = answer;
  return { ...fields, scheduledAt: new Date(scheduled_ms) };
}

/** For an app. Answers the new job's id. */
export function enqueueOne({ type, payload, ...options }: NewJob): Statement<string> {
  return {
    name: "enqueue one",
    isRepeatable: Boolean(options.idempotencyKey),
    build: (schema) => sql`
      select ${schema}.enqueue(${type}::text, ${JSON.stringify(payload)}::text::jsonb${namedArguments(options)}) as id`,
    decode: one((row) => String(row.id)),
  };
}

/** The options that many jobs can share. */
export type SharedOptions = Omit<JobOptions, "idempotencyKey">;

/** For an app. Answers the ids in the order of the payloads. */
export function enqueueMany(
  type: string,
  payloads: readonly Payload[],
  options: SharedOptions,
): Statement<string[]> {
  return {
    name: "enqueue many",
    isRepeatable: false,
    build: (schema) => sql`
      select id
      from ${schema}.enqueue_many(
        ${type}::text,
        array(select jsonb_array_elements(${JSON.stringify(payloads)}::text::jsonb))${namedArguments(options)}
      ) as id`,
    decode: many((row) => String(row.id)),
  };
}

/** Only options that have a value. Each is sent as text and cast here: drivers differ in dates, arrays and JSON. */
function namedArguments(options: JobOptions): SQL {
  const presentOptions = optionList.filter(({ name }) => hasValue(options[name]));
  return sql.join(
    presentOptions.map(
      ({ name, field, sqlType }) => sql`, ${sql.raw(field)} => ${castFromText(options[name], sqlType)}`,
    ),
  );
}

function castFromText(value: unknown, sqlType: string): SQL {
  if (sqlType === "jsonb") return sql`${JSON.stringify(value)}::text::jsonb`;
  if (Array.isArray(value))
    return sql`array(select jsonb_array_elements_text(${JSON.stringify(value)}::text::jsonb))`;
  const text = value instanceof Date ? value.toISOString() : String(value);
  return sql`${text}::text::${sql.raw(sqlType)}`;
}
