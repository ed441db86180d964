// The tables and views whose rows statements answer with, as far as they are read. test/sql/schema.test.ts compares them with
// the catalogue. Migrations are written by hand; nothing is generated from this file.
// A description is named as its table or view, in camel case. Users of drizzle get theirs from src/drizzle/views.ts.
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
import {
  bigint,
  bigintAsText,
  boolean,
  doublePrecision,
  integer,
  json,
  numeric,
  smallint,
  text,
  time,
  uuid,
} from "./column.ts";

/** A view. */
export const jobs = {
  id: uuid("id").notNull(),
  type: text("type").notNull(),
  queue: text("queue").notNull(),
  status: text("status", jobStatuses).notNull(),
  priority: smallint("priority").notNull(),
  payload: json<Payload>("payload").notNull(),
  attempts: integer("attempts").notNull(),
  maxAttempts: smallint("max_attempts").notNull(),
  createdAt: time("created_at").notNull(),
  scheduledAt: time("scheduled_at").notNull(),
  startedAt: time("started_at"),
  completedAt: time("completed_at"),
  expiresAt: time("expires_at").notNull(),
  deadReason: text("dead_reason", deadReasons),
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

/** A view. */
export const books = {
  queue: text("queue").notNull(),
  type: text("type").notNull(),
  priority: smallint("priority").notNull(),
  enqueued: numeric("enqueued").notNull(),
  pending: numeric("pending").notNull(),
  scheduled: numeric("scheduled").notNull(),
  leased: numeric("leased").notNull(),
  completed: numeric("completed").notNull(),
  failed: numeric("failed").notNull(),
  dead: numeric("dead").notNull(),
  discarded: numeric("discarded").notNull(),
  cancelled: numeric("cancelled").notNull(),
  expired: numeric("expired").notNull(),
  blocked: numeric("blocked").notNull(),
};

/** All columns but the hash, which the Worker's role may not read. */
export const apiKey = {
  id: uuid("id").notNull(),
  name: text("name").notNull(),
  role: text("role", roles).notNull(),
  jobTypes: text("job_types").array(),
  rateLimitPerSecond: integer("rate_limit_per_second").notNull(),
  createdAt: time("created_at").notNull(),
  revokedAt: time("revoked_at"),
  lastUsedAt: time("last_used_at"),
};

export const audit = {
  id: bigintAsText("id").notNull(),
  at: time("at").notNull(),
  actor: text("actor").notNull(),
  action: text("action").notNull(),
  target: text("target").notNull(),
  before: json<Json>("before"),
  after: json<Json>("after"),
};

export const pause = {
  kind: text("kind", ["queue", "type"]).notNull(),
  name: text("name").notNull(),
  since: time("since").notNull(),
};

export const breaker = {
  type: text("type").notNull(),
  openedAt: time("opened_at").notNull(),
  closedAt: time("closed_at"),
};

export const alarm = {
  alarm: text("alarm", alarmNames).notNull(),
  queue: text("queue"),
  jobType: text("job_type"),
  version: bigint("version").notNull(),
  phase: text("phase", ["ok", "pending", "firing"]).notNull(),
  since: time("since").notNull(),
  changedAt: time("changed_at").notNull(),
  recent: boolean("recent").array().notNull(),
  clearRounds: integer("clear_rounds").notNull(),
  notified: text("notified", ["ok", "firing"]).notNull(),
  notifiedAt: time("notified_at"),
  severity: text("severity", severities).notNull(),
  value: doublePrecision("value"),
  threshold: doublePrecision("threshold").notNull(),
  summary: text("summary").notNull(),
};

export const alarmTarget = {
  name: text("name").notNull(),
  urlHash: text("url_hash").notNull(),
  goneSince: time("gone_since"),
  failingSince: time("failing_since"),
  deliveredAt: time("delivered_at"),
  status: integer("status"),
  error: text("error"),
};

export const alarmSilence = {
  alarm: text("alarm").notNull(),
  until: time("until").notNull(),
  actor: text("actor"),
  reason: text("reason"),
};

export const round = {
  id: bigintAsText("id").notNull(),
  kind: text("kind", roundKinds).notNull(),
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
};

export const alarmEvent = {
  id: bigintAsText("id").notNull(),
  at: time("at").notNull(),
  alarm: text("alarm").notNull(),
  queue: text("queue"),
  jobType: text("job_type"),
  event: text("event", ["firing", "resolved", "silenced", "unsilenced"]).notNull(),
  severity: text("severity", severities),
  value: doublePrecision("value"),
  threshold: doublePrecision("threshold"),
  since: time("since"),
  summary: text("summary"),
  until: time("until"),
  actor: text("actor"),
  reason: text("reason"),
};

export const delivery = {
  id: uuid("id").notNull(),
  target: text("target").notNull(),
  notice: json<Json>("notice").notNull(),
  tries: integer("tries").notNull(),
};
