// recent attempts, list breakers, open breaker, close breaker by probe. See migrations/functions/breaker.sql.
import { sql } from "drizzle-orm";
import type { LeaseRef } from "../job.ts";
import type { RecentAttempts } from "../policy/attempt-end.ts";
import { many, one, type Statement, time, timeOf } from "./statement.ts";

export function recentAttempts(type: string): Statement<RecentAttempts> {
  return {
    name: "recent attempts",
    isRepeatable: true,
    build: (schema) =>
      sql`select completed, failed, is_on_trial from ${schema}.recent_attempts(${type}::text)`,
    decode: one((row) => ({
      completed: Number(row.completed),
      failed: Number(row.failed),
      isOnTrial: row.is_on_trial as boolean,
    })),
  };
}

/** Answers true if the breaker was closed. */
export function openBreaker(type: string): Statement<boolean> {
  return {
    name: "open breaker",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.open_breaker(${type}::text) as changed`,
    decode: one((row) => row.changed as boolean),
  };
}

/** Answers true if the breaker was open. Only a job that was claimed while it was open closes it. */
export function closeBreakerByProbe(job: LeaseRef): Statement<boolean> {
  return {
    name: "close breaker by probe",
    isRepeatable: true,
    build: (schema) =>
      sql`select ${schema}.close_breaker_by_probe(${job.id}::uuid, ${job.leaseKey}::uuid) as changed`,
    decode: one((row) => row.changed as boolean),
  };
}

export interface OpenBreaker {
  type: string;
  openedAt: Date;
}

/** Only open breakers are listed. */
export function listBreakers(): Statement<OpenBreaker[]> {
  return {
    name: "list breakers",
    isRepeatable: true,
    build: (schema) => sql`select type, ${time("opened_at")} from ${schema}.breaker where closed_at is null`,
    decode: many((row) => ({ type: row.type as string, openedAt: timeOf(row.opened_at) })),
  };
}
