// recent attempts, open breaker, close breaker by probe. See migrations/functions/breaker.sql.
import type { LeaseRef } from "../job.ts";
import type { RecentAttempts } from "../policy/attempt-end.ts";
import { sql } from "./sql.ts";
import { one, type Statement } from "./statement.ts";

export function recentAttempts(type: string): Statement<RecentAttempts> {
  return {
    name: "recent attempts",
    isRepeatable: true,
    build: (schema) =>
      sql`select completed, failed, is_on_trial from ${schema}.recent_attempts(${type}::text)`,
    decode: one((row) => ({
      completed: Number(row.completed),
      failed: Number(row.failed),
      isOnTrial: row.is_on_trial === true,
    })),
  };
}

/** Answers true if the breaker was closed. */
export function openBreaker(type: string): Statement<boolean> {
  return {
    name: "open breaker",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.open_breaker(${type}::text) as changed`,
    decode: one((row) => row.changed === true),
  };
}

/** Answers true if the breaker was open. Only a job that was claimed while it was open closes it. */
export function closeBreakerByProbe(job: LeaseRef): Statement<boolean> {
  return {
    name: "close breaker by probe",
    isRepeatable: true,
    build: (schema) =>
      sql`select ${schema}.close_breaker_by_probe(${job.id}::uuid, ${job.leaseKey}::uuid) as changed`,
    decode: one((row) => row.changed === true),
  };
}
