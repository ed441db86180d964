// sluice/drizzle: the views `jobs` and `books` for drizzle, so that your queries can read them and join them with your tables. They
// are for reading. drizzle-kit leaves them alone, because they are declared as existing.
import { customType, integer, numeric, pgSchema, smallint, text, timestamp, uuid } from "drizzle-orm/pg-core";
import {
  deadReasons,
  type JobError,
  type JobSchedule,
  type Json,
  jobStatuses,
  type Payload,
} from "../core/job.ts";
import { defaultSchema } from "../core/schema-name.ts";

/** drizzle's own jsonb parses a value that is a string once more. */
const json = <T>(name: string) => customType<{ data: T }>({ dataType: () => "jsonb" })(name);
const time = (name: string) => timestamp(name, { withTimezone: true });
const sum = (name: string) => numeric(name, { mode: "number" }).notNull();

/** The views in a schema of another name. */
export function viewsIn(schema: string) {
  return {
    jobs: pgSchema(schema).view("jobs", jobColumns).existing(),
    books: pgSchema(schema).view("books", booksColumns).existing(),
  };
}

const jobColumns = {
  id: uuid("id").notNull(),
  type: text("type").notNull(),
  queue: text("queue").notNull(),
  status: text("status", { enum: jobStatuses }).notNull(),
  priority: smallint("priority").notNull(),
  payload: json<Payload>("payload").notNull(),
  attempts: integer("attempts").notNull(),
  maxAttempts: smallint("max_attempts").notNull(),
  createdAt: time("created_at").notNull(),
  scheduledAt: time("scheduled_at").notNull(),
  startedAt: time("started_at"),
  completedAt: time("completed_at"),
  expiresAt: time("expires_at").notNull(),
  deadReason: text("dead_reason", { enum: deadReasons }),
  partitionKey: text("partition_key"),
  partitionBucket: integer("partition_bucket"),
  fairKey: text("fair_key"),
  tags: text("tags").array(),
  idempotencyKey: text("idempotency_key"),
  traceparent: text("traceparent"),
  output: json<Json>("output"),
  errors: json<JobError[]>("errors").notNull(),
  chainId: uuid("chain_id"),
  chainIndex: integer("chain_index"),
  flowId: uuid("flow_id"),
  culprit: uuid("culprit"),
  supersededBy: uuid("superseded_by"),
  schedule: json<JobSchedule>("schedule"),
  worker: text("worker"),
  leaseExpiresAt: time("lease_expires_at"),
};

const booksColumns = {
  queue: text("queue").notNull(),
  type: text("type").notNull(),
  priority: smallint("priority").notNull(),
  enqueued: sum("enqueued"),
  pending: sum("pending"),
  scheduled: sum("scheduled"),
  leased: sum("leased"),
  completed: sum("completed"),
  failed: sum("failed"),
  dead: sum("dead"),
  discarded: sum("discarded"),
  cancelled: sum("cancelled"),
  expired: sum("expired"),
  blocked: sum("blocked"),
};

export const { jobs, books } = viewsIn(defaultSchema);
