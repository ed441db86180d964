// list blocked keys: partition keys that stand still behind a dead job. See migrations/functions/blocked-keys.sql.
import type { DeadReason } from "../job.ts";
import { sql } from "./sql.ts";
import { many, type Row, type Statement, time, timeOf } from "./statement.ts";

export interface BlockedKey {
  partitionKey: string;
  /** Of the ring of workers, 0 to 359. */
  bucket: number;
  since: Date;
  /** The dead job that blocks the key until it is replayed or discarded. */
  jobId: string;
  type: string;
  deadReason: DeadReason;
  /** The message of its last failed attempt. */
  error: string | null;
  /** The due jobs that wait behind it. There are more than these if `waitingIsMore` is true. */
  waiting: number;
  waitingIsMore: boolean;
  position: BlockedKeyPosition;
}

/** Where a page ends. The time is in microseconds, because that is how exactly the database orders by it. */
export interface BlockedKeyPosition {
  sinceMicros: string;
  jobId: string;
}

/** The longest blocked first. */
export function listBlockedKeys(
  queue: string,
  { after, limit }: { after?: BlockedKeyPosition | undefined; limit: number },
): Statement<BlockedKey[]> {
  return {
    name: "list blocked keys",
    isRepeatable: true,
    build: (schema) => sql`
      select partition_key, bucket, ${time("since")}, since_micros, job_id, type, dead_reason, error, waiting,
             waiting_is_more
      from ${schema}.blocked_keys(
        ${queue}::text,
        ${after?.sinceMicros ?? null}::bigint,
        ${after?.jobId ?? null}::uuid,
        ${limit}::int
      )`,
    decode: many(decodeBlockedKey),
  };
}

function decodeBlockedKey(row: Row): BlockedKey {
  const jobId = String(row.job_id);
  return {
    partitionKey: String(row.partition_key),
    bucket: Number(row.bucket),
    since: timeOf(row.since),
    jobId,
    type: String(row.type),
    deadReason: row.dead_reason as DeadReason,
    error: row.error as string | null,
    waiting: Number(row.waiting),
    waitingIsMore: Boolean(row.waiting_is_more),
    position: { sinceMicros: String(row.since_micros), jobId },
  };
}
