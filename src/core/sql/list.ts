// list dead letters, list shown dead letters. See migrations/functions/list.sql.
import type { DeadLetterFilter } from "../dead-letters.ts";
import type { Job } from "../job.ts";
import { decodeJob, decodeListed, jobColumns, listedColumns } from "../job-row.ts";
import { listColumns } from "./columns.ts";
import { type SQL, sql } from "./sql.ts";
import { many, type Row, type Statement, time, timeOf } from "./statement.ts";

/** Where a page ends. The time is in microseconds, because that is how exactly the database orders by it. */
export interface DeathPosition {
  diedMicros: string;
  jobId: string;
}

export interface DeadLetterPage extends DeadLetterFilter {
  since?: Date | undefined;
  before?: DeathPosition | undefined;
  limit: number;
}

/** The last death first. */
export function listDeadLetters(page: DeadLetterPage): Statement<{ job: Job; position: DeathPosition }[]> {
  return {
    name: "list dead letters",
    isRepeatable: true,
    build: (schema) =>
      sql`select ${listColumns(jobColumns)}, ${diedMicros} from ${deadLetters(schema, page)}`,
    decode: many((row) => withPosition(decodeJob(row), row)),
  };
}

/** The same for the eyes of people, without payloads: a whole page of them may be megabytes. */
export interface ShownDeadLetter {
  job: Omit<Job, "payload" | "output">;
  diedAt: Date;
  position: DeathPosition;
}

export function listShownDeadLetters(page: DeadLetterPage): Statement<ShownDeadLetter[]> {
  return {
    name: "list shown dead letters",
    isRepeatable: true,
    build: (schema) => sql`
      select ${listColumns(listedColumns)}, ${time("closed_at")}, ${diedMicros} from ${deadLetters(schema, page)}`,
    decode: many((row) => ({ ...withPosition(decodeListed(row), row), diedAt: timeOf(row.closed_at) })),
  };
}

const diedMicros = sql`(extract(epoch from closed_at) * 1000000)::bigint as died_micros`;

function deadLetters(schema: SQL, page: DeadLetterPage): SQL {
  return sql`${schema}.dead_letters(
    ${page.type ?? null}::text,
    ${page.reason ?? null}::text,
    ('x' || ${page.fingerprint ?? null}::text)::bit(64)::bigint,
    ${page.queue ?? null}::text,
    ${page.since?.toISOString() ?? null}::timestamptz,
    ${page.until?.toISOString() ?? null}::timestamptz,
    ${page.before?.diedMicros ?? null}::bigint,
    ${page.before?.jobId ?? null}::uuid,
    ${page.limit}::int
  )`;
}

function withPosition<Listed extends { id: string }>(
  job: Listed,
  row: Row,
): { job: Listed; position: DeathPosition } {
  return { job, position: { diedMicros: String(row.died_micros), jobId: job.id } };
}
