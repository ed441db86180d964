// enqueue: new jobs, all or none, in one statement. The Worker calls enqueue_jobs, which takes any batch as JSON. An app
// that enqueues in its own transaction may only call enqueue and enqueue_many. See migrations/functions/enqueue.sql.
import { SluiceError } from "../errors.ts";
import { type JobStatus, type NewJob, type Payload, timeOfId } from "../job.ts";
import {
  type EnqueueOutcome,
  hasValue,
  haveEqualOptions,
  type JobOptions,
  optionList,
  toField,
  toFields,
} from "../job-options.ts";
import { type SQL, sql } from "./sql.ts";
import { many, one, type Statement } from "./statement.ts";

export interface EnqueuedJob {
  id: string;
  status: JobStatus;
  type: string;
  queue: string;
  scheduledAt: Date;
  deduplicated: boolean;
  /** Null without a debounce or a throttle. */
  outcome: EnqueueOutcome | null;
  replacedId: string | null;
}

/** Only the id for a job that is new and due now. */
type Answer =
  | string
  | {
      id: string;
      status: JobStatus;
      scheduled_ms: number;
      deduplicated: boolean;
      outcome?: EnqueueOutcome;
      replaced_id?: string;
    };

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
  const plain = { outcome: null, replacedId: null };
  if (typeof answer === "string")
    return { id: answer, status: "pending", scheduledAt: timeOfId(answer), deduplicated: false, ...plain };
  const { scheduled_ms, outcome = null, replaced_id = null, ...fields } = answer;
  return { ...fields, scheduledAt: new Date(scheduled_ms), outcome, replacedId: replaced_id };
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

/** What `enqueue_with_outcome` tells of a new job. */
export interface ToldJob {
  id: string;
  outcome: EnqueueOutcome | null;
  replacedId: string | null;
  deduplicated: boolean;
}

/** For an app: the same, and what has become of the call. */
export function enqueueWithOutcome({ type, payload, ...options }: NewJob): Statement<ToldJob> {
  return {
    name: "enqueue with outcome",
    isRepeatable: Boolean(options.idempotencyKey),
    build: (schema) => sql`
      select job_id as id, outcome, replaced_job_id, deduplicated
      from ${schema}.enqueue_with_outcome(${type}::text, ${JSON.stringify(payload)}::text::jsonb,
                                          ${JSON.stringify(toFields(options))}::text::jsonb)`,
    decode: one((row) => ({
      id: String(row.id),
      outcome: row.outcome as EnqueueOutcome | null,
      replacedId: row.replaced_job_id as string | null,
      deduplicated: row.deduplicated === true,
    })),
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
      ({ name, field, sqlType }) =>
        sql`, ${sql.raw(field)} => ${castFromText(toField(options, name), sqlType)}`,
    ),
    "",
  );
}

function castFromText(value: unknown, sqlType: string): SQL {
  if (sqlType === "jsonb") return sql`${JSON.stringify(value)}::text::jsonb`;
  if (Array.isArray(value))
    return sql`array(select jsonb_array_elements_text(${JSON.stringify(value)}::text::jsonb))`;
  const text = value instanceof Date ? value.toISOString() : String(value);
  return sql`${text}::text::${sql.raw(sqlType)}`;
}
