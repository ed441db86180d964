// claim: a batch of due jobs under a lease, and whether there are more. See migrations/functions/claim.sql.
import { sql } from "drizzle-orm";
import type { ClaimedJob, JobError, Payload } from "../job.ts";
import type { Statement } from "./statement.ts";

export interface Claim {
  queue: string;
  types: readonly string[];
  limit: number;
  leaseSeconds: number;
  worker?: string;
}

/** `hasMore` is the same in every row: it comes with the batch, not with the job. */
export interface ClaimRow {
  job: ClaimedJob;
  hasMore: boolean;
}

export function claim({ queue, types, limit, leaseSeconds, worker }: Claim): Statement<ClaimRow> {
  return {
    name: "claim",
    // Run again after a lost answer it claims other jobs; the first ones come back when their lease runs out.
    isRepeatable: false,
    build: (schema) => sql`
      select id, type, payload, attempt, max_attempts, strikes, lease_generation, lease_expires_at, priority,
             created_at, partition_key, traceparent, tags, errors, has_more
      from ${schema}.claim(
        ${queue}::text,
        ${sql.param(types)}::text[],
        ${limit}::int,
        ${leaseSeconds}::float8,
        ${worker ?? null}::text
      )`,
    decode: (row) => ({
      job: {
        id: row.id as string,
        leaseGeneration: String(row.lease_generation),
        type: row.type as string,
        payload: row.payload as Payload,
        attempt: Number(row.attempt),
        maxAttempts: Number(row.max_attempts),
        strikes: Number(row.strikes),
        leaseExpiresAt: row.lease_expires_at as Date,
        priority: Number(row.priority),
        createdAt: row.created_at as Date,
        partitionKey: row.partition_key as string | null,
        traceparent: row.traceparent as string | null,
        tags: (row.tags as string[] | null) ?? [],
        errors: row.errors as JobError[],
      },
      hasMore: row.has_more as boolean,
    }),
  };
}
