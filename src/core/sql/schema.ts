// The tables and views whose rows statements answer with, as far as they are read. test/sql/schema.test.ts compares them with
// the catalogue. Migrations are written by hand; nothing is generated from this file.
//
// Views are described with pgTable, too: pgView brings drizzle's query builder into the Worker (docs/decisions/drizzle.md).
// The schema's name is not given here, because the deployment chooses it.
import {
  bigint,
  boolean,
  customType,
  doublePrecision,
  integer,
  numeric,
  pgTable,
  smallint,
  text,
  uuid,
} from "drizzle-orm/pg-core";
import { alarmNames, severities } from "../alarms/alarm.ts";
import {
  deadReasons,
  type JobError,
  type JobSchedule,
  type Json,
  jobStatuses,
  type Payload,
} from "../job.ts";
import { roles } from "../key.ts";
import { roundKinds } from "../snapshot.ts";

/** Milliseconds in a column (columns.ts), ISO 8601 in JSON. */
const time = customType<{ data: Date; driverData: number | string }>({
  dataType: () => "timestamp with time zone",
  fromDriver: (value) => new Date(value),
});

/** A number that may not fit into a double. */
const bigintAsText = customType<{ data: string; driverData: string | number }>({
  dataType: () => "bigint",
  fromDriver: String,
});

/** drizzle's own jsonb parses a value that is a string once more. */
const json = <T>(name: string) => customType<{ data: T }>({ dataType: () => "jsonb" })(name).$type<T>();

const count = (name: string) => bigint(name, { mode: "number" });
const sum = (name: string) => numeric(name, { mode: "number" });

/** A view. */
export const jobs = pgTable("jobs", {
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
  leaseExpiresAt: time("lease_expires_at"),
});

/** A view. */
export const books = pgTable("books", {
  queue: text("queue").notNull(),
  type: text("type").notNull(),
  priority: smallint("priority").notNull(),
  enqueued: sum("enqueued").notNull(),
  pending: sum("pending").notNull(),
  scheduled: sum("scheduled").notNull(),
  leased: sum("leased").notNull(),
  completed: sum("completed").notNull(),
  failed: sum("failed").notNull(),
  dead: sum("dead").notNull(),
  discarded: sum("discarded").notNull(),
  cancelled: sum("cancelled").notNull(),
  expired: sum("expired").notNull(),
  blocked: sum("blocked").notNull(),
});

/** All columns but the hash, which the Worker's role may not read. */
export const apiKey = pgTable("api_key", {
  id: uuid("id").notNull(),
  name: text("name").notNull(),
  role: text("role", { enum: roles }).notNull(),
  jobTypes: text("job_types").array(),
  rateLimitPerSecond: integer("rate_limit_per_second").notNull(),
  createdAt: time("created_at").notNull(),
  revokedAt: time("revoked_at"),
  lastUsedAt: time("last_used_at"),
});

export const audit = pgTable("audit", {
  id: bigintAsText("id").notNull(),
  at: time("at").notNull(),
  actor: text("actor").notNull(),
  action: text("action").notNull(),
  target: text("target").notNull(),
  before: json<Json>("before"),
  after: json<Json>("after"),
});

export const pause = pgTable("pause", {
  kind: text("kind", { enum: ["queue", "type"] }).notNull(),
  name: text("name").notNull(),
  since: time("since").notNull(),
});

export const breaker = pgTable("breaker", {
  type: text("type").notNull(),
  openedAt: time("opened_at").notNull(),
  closedAt: time("closed_at"),
});

export const alarm = pgTable("alarm", {
  alarm: text("alarm", { enum: alarmNames }).notNull(),
  queue: text("queue"),
  jobType: text("job_type"),
  version: count("version").notNull(),
  phase: text("phase", { enum: ["ok", "pending", "firing"] }).notNull(),
  since: time("since").notNull(),
  changedAt: time("changed_at").notNull(),
  recent: boolean("recent").array().notNull(),
  clearRounds: integer("clear_rounds").notNull(),
  notified: text("notified", { enum: ["ok", "firing"] }).notNull(),
  notifiedAt: time("notified_at"),
  severity: text("severity", { enum: severities }).notNull(),
  value: doublePrecision("value"),
  threshold: doublePrecision("threshold").notNull(),
  summary: text("summary").notNull(),
});

export const alarmTarget = pgTable("alarm_target", {
  name: text("name").notNull(),
  urlHash: text("url_hash").notNull(),
  goneSince: time("gone_since"),
  failingSince: time("failing_since"),
  deliveredAt: time("delivered_at"),
  status: integer("status"),
  error: text("error"),
});

export const alarmSilence = pgTable("alarm_silence", {
  alarm: text("alarm").notNull(),
  until: time("until").notNull(),
  actor: text("actor"),
  reason: text("reason"),
});

export const round = pgTable("round", {
  id: bigintAsText("id").notNull(),
  kind: text("kind", { enum: roundKinds }).notNull(),
  queue: text("queue"),
  startedAt: time("started_at").notNull(),
  endedAt: time("ended_at").notNull(),
  claimed: integer("claimed").notNull(),
  completed: integer("completed").notNull(),
  failed: integer("failed").notNull(),
  released: integer("released").notNull(),
  lost: integer("lost").notNull(),
  reason: text("reason").notNull(),
  message: text("message"),
  steps: json<Record<string, Json>>("steps"),
});

export const alarmEvent = pgTable("alarm_event", {
  id: bigintAsText("id").notNull(),
  at: time("at").notNull(),
  alarm: text("alarm").notNull(),
  queue: text("queue"),
  jobType: text("job_type"),
  event: text("event", { enum: ["firing", "resolved", "silenced", "unsilenced"] }).notNull(),
  severity: text("severity", { enum: severities }),
  value: doublePrecision("value"),
  threshold: doublePrecision("threshold"),
  since: time("since"),
  summary: text("summary"),
  until: time("until"),
  actor: text("actor"),
  reason: text("reason"),
});

export const delivery = pgTable("delivery", {
  id: uuid("id").notNull(),
  target: text("target").notNull(),
  notice: json<Json>("notice").notNull(),
  tries: integer("tries").notNull(),
});
