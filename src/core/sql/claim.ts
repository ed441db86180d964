// claim: a batch of due jobs under a lease, and whether there are more. See migrations/functions/claim.sql.
import { sql } from "drizzle-orm";
import type { ClaimedJob, JobError, Payload } from "../job.ts";
import type { Statement } from "./statement.ts";

export interface ClaimableType {
  type: string;
  limits?: { concurrency?: number; rate?: { limit: number; perSeconds: number } };
  /** If it is another than the claim's. */
  leaseSeconds?: number;
}

export interface Claim {
  queue: string;
  /** A name alone is a type without limits. */
  types: readonly (ClaimableType | string)[];
  limit: number;
  leaseSeconds: number;
  worker?: string;
  /** Of payloads; the first job is claimed whatever its size. */
  maxBytes?: number;
}

const defaultMaxBytes = 4 * 1024 * 1024;

/** `hasMore` is the same in every row: it comes with the batch, not with the job. */
export interface ClaimRow {
  job: ClaimedJob;
  hasMore: boolean;
}

export function claim({
  queue,
  limit,
  leaseSeconds,
  worker,
  maxBytes,
  ...asked
}: Claim): Statement<ClaimRow> {
  const types = asked.types.map((type) => (typeof type === "string" ? { type } : type));
  return {
    name: "claim",
    // Run again after a lost answer it claims other jobs; the first ones come back when their lease runs out.
    isRepeatable: false,
    build: (schema) => sql`
      select id, type, payload, attempt, max_attempts, strikes, lease_generation, priority,
             -- as numbers: to read a time costs more than to read the rest of the row
             date_part('epoch', lease_expires_at) * 1000 as lease_expires_ms,
             date_part('epoch', created_at) * 1000 as created_ms,
             partition_key, traceparent, tags, errors, is_probe, has_more
      from ${schema}.claim(
        ${queue}::text,
        ${sql.param(types.map(({ type }) => type))}::text[],
        ${limit}::int,
        ${leaseSeconds}::float8,
        ${worker ?? null}::text,
        ${maxBytes ?? defaultMaxBytes}::bigint,
        ${limitsOf(types)}::jsonb,
        ${leasesOf(types, leaseSeconds)}::jsonb
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
        leaseExpiresAt: new Date(Number(row.lease_expires_ms)),
        priority: Number(row.priority),
        createdAt: new Date(Number(row.created_ms)),
        partitionKey: row.partition_key as string | null,
        traceparent: row.traceparent as string | null,
        tags: (row.tags as string[] | null) ?? [],
        errors: row.errors as JobError[],
        isProbe: row.is_probe as boolean,
      },
      hasMore: row.has_more as boolean,
    }),
  };
}

/** Only the limited types: without any, a claim does not even look. */
function limitsOf(types: readonly ClaimableType[]): string | null {
  const limited = types.flatMap(({ type, limits }) =>
    limits?.concurrency || limits?.rate
      ? [
          [
            type,
            { concurrency: limits.concurrency, rate: limits.rate?.limit, seconds: limits.rate?.perSeconds },
          ] as const,
        ]
      : [],
  );
  return limited.length > 0 ? JSON.stringify(Object.fromEntries(limited)) : null;
}

function leasesOf(types: readonly ClaimableType[], usual: number): string | null {
  const unusual = types.filter((type) => type.leaseSeconds !== undefined && type.leaseSeconds !== usual);
  return unusual.length > 0
    ? JSON.stringify(Object.fromEntries(unusual.map((type) => [type.type, type.leaseSeconds])))
    : null;
}
