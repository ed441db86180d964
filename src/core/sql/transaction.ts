// The calls that an app makes in its own transaction: enqueue, enqueue_many, complete. Every parameter is text and is
// cast in the statement, so that each driver sends the same whatever it makes of dates, arrays and JSON.
import { type SQL, sql } from "drizzle-orm";
import type { Held, Json, NewJob, Payload } from "../job.ts";
import { many, one, type Statement } from "./statement.ts";

type Options = Omit<NewJob, "type" | "payload">;

/** The new job's id. */
export function enqueueOne({ type, payload, ...options }: NewJob): Statement<string> {
  return {
    name: "enqueue one",
    isRepeatable: Boolean(options.idempotencyKey),
    build: (schema) => sql`
      select ${schema}.enqueue(${type}::text, ${JSON.stringify(payload)}::text::jsonb${named(options)}) as id`,
    decode: one((row) => row.id as string),
  };
}

/** The ids, in the order of the payloads. A key of one job's own does not go with many. */
export function enqueueMany(
  type: string,
  payloads: readonly Payload[],
  options: Omit<Options, "idempotencyKey" | "partitionKey">,
): Statement<string[]> {
  return {
    name: "enqueue many",
    isRepeatable: false,
    build: (schema) => sql`
      select id
      from ${schema}.enqueue_many(
        ${type}::text,
        array(select jsonb_array_elements(${JSON.stringify(payloads)}::text::jsonb))${named(options)}
      ) as id`,
    decode: many((row) => row.id as string),
  };
}

/** False: the lease is lost, and the transaction should be rolled back. */
export function completeOne(job: Held, output: Json): Statement<boolean> {
  return {
    name: "complete",
    isRepeatable: false,
    build: (schema) => sql`
      select ${schema}.complete(
        ${job.id}::text::uuid,
        ${job.leaseKey}::text::uuid,
        ${JSON.stringify(output)}::text::jsonb
      ) as applied`,
    decode: one((row) => row.applied as boolean),
  };
}

/** Only what was given: what is left out has its default in the function. */
function named(options: Options): SQL {
  const given = [
    ["queue", options.queue, "text"],
    ["priority", options.priority, "int"],
    ["max_attempts", options.maxAttempts, "int"],
    ["delay_seconds", options.delaySeconds, "float8"],
    ["scheduled_at", options.scheduledAt?.toISOString(), "timestamptz"],
    ["expires_at", options.expiresAt?.toISOString(), "timestamptz"],
    ["idempotency_key", options.idempotencyKey, "text"],
    ["partition_key", options.partitionKey, "text"],
    ["traceparent", options.traceparent, "text"],
  ] as const;
  const args = given
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value, type]) => sql`, ${sql.raw(name)} => ${String(value)}::text::${sql.raw(type)}`);
  if (options.tags?.length) {
    args.push(
      sql`, tags => array(select jsonb_array_elements_text(${JSON.stringify(options.tags)}::text::jsonb))`,
    );
  }
  return sql.join(args);
}
