// recent attempts, open breaker, close breaker, close breaker by probe. See migrations/functions/breaker.sql.
import { sql } from "drizzle-orm";
import type { Held } from "../job.ts";
import type { Attempts } from "../policy/circuit-breaker.ts";
import type { Statement } from "./statement.ts";

export function recentAttempts(type: string): Statement<Attempts> {
  return {
    name: "recent attempts",
    isRepeatable: true,
    build: (schema) => sql`select completed, failed from ${schema}.recent_attempts(${type}::text)`,
    decode: (row) => ({ completed: Number(row.completed), failed: Number(row.failed) }),
  };
}

/** Whether that changed anything. */
export function openBreaker(type: string): Statement<boolean> {
  return {
    name: "open breaker",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.open_breaker(${type}::text) as changed`,
    decode: (row) => row.changed as boolean,
  };
}

/** Whether that changed anything. */
export function closeBreaker(type: string): Statement<boolean> {
  return {
    name: "close breaker",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.close_breaker(${type}::text) as changed`,
    decode: (row) => row.changed as boolean,
  };
}

/** Whether that changed anything. Only a job that was claimed while its type's breaker was open closes it. */
export function closeBreakerByProbe(job: Held): Statement<boolean> {
  return {
    name: "close breaker by probe",
    isRepeatable: true,
    build: (schema) =>
      sql`select ${schema}.close_breaker_by_probe(${job.id}::uuid, ${job.leaseKey}::uuid) as changed`,
    decode: (row) => row.changed as boolean,
  };
}
