// The name and type of each column that a statement answers with. A change here is a change of what the Worker reads: with
// bigint and numeric a driver answers text, with the other numbers a number.
import type * as statements from "../../src/core/sql/index.ts";

export const columnTypes: Record<keyof typeof statements, string> = {
  addKey:
    "id uuid, name text, role text, job_types text[], rate_limit_per_second integer, " +
    "created_at double precision, revoked_at double precision, last_used_at double precision",
  addPartitions: "count integer",
  advanceCursors: "advance_cursors void",
  applyCodeSchedules: "put integer, removed integer",
  auditTestNotice: "audit_test_notice void",
  backlog: "queue text, due bigint",
  books:
    "queue text, type text, priority smallint, enqueued numeric, pending numeric, " +
    "scheduled numeric, leased numeric, completed numeric, failed numeric, dead numeric, " +
    "discarded numeric, cancelled numeric, expired numeric, blocked numeric",
  cancel: "changed jsonb",
  cancelFlow: "answer jsonb",
  changeAlarms: "alarm text, queue text, job_type text",
  checkReach: "count integer",
  checkpoint: "answers jsonb",
  checkpointOne: "answer jsonb, stored jsonb, now_ms double precision",
  claim: "claimed json",
  claimDeliveries: "id uuid, target text, notice jsonb, tries integer",
  closeBreakerByProbe: "changed boolean",
  completeOne: "applied boolean",
  advanceDeadRun: "step jsonb",
  advanceDeadRuns: "step jsonb",
  countDead: "dead bigint, at double precision",
  findDeadRun: "run jsonb",
  foldDeaths: "count integer",
  listDeadGroups:
    "type text, reason text, fingerprint text, dead bigint, first_at double precision, last_at double precision, " +
    "groups bigint, total numeric, newest_id uuid, error text, pattern text, hours json",
  listDeadRuns: "run jsonb",
  startDeadRun: "run jsonb",
  stopDeadRun: "stopped jsonb",
  deleteSchedule: "found boolean",
  deleteFlow: "answer text",
  depths: "queue text, pending numeric",
  discard: "changed jsonb",
  dropOldestDay: "day text",
  durations: "buckets json, bounds double precision[]",
  enqueue: "answers json",
  enqueueFlow: "flow jsonb",
  enqueueMany: "id uuid",
  enqueueOne: "id uuid",
  enqueueWithOutcome: "id uuid, outcome text, replaced_job_id uuid, deduplicated boolean",
  extend: "id uuid, lease_expires_at double precision, cancel_requested boolean",
  extendOne: "changed jsonb",
  findBlockers: "blockers jsonb",
  findChain: "chain jsonb",
  findFlow: "flow jsonb",
  findCancelRequests: "ids uuid[]",
  findOutcomes: "outcomes jsonb",
  findSchedule: "schedule jsonb",
  findSignal: "signal jsonb",
  findSteps: "steps jsonb, now_ms double precision",
  listSteps: "steps jsonb",
  findJob:
    "id uuid, type text, queue text, status text, priority smallint, payload jsonb, " +
    "attempts integer, max_attempts smallint, created_at double precision, " +
    "scheduled_at double precision, started_at double precision, completed_at double precision, " +
    "expires_at double precision, dead_reason text, partition_key text, partition_bucket integer, fair_key text, tags text[], " +
    "idempotency_key text, traceparent text, output jsonb, chain_id uuid, chain_index integer, flow_id uuid, culprit uuid, superseded_by uuid, schedule jsonb, worker text, errors jsonb, waiting_for jsonb, steps jsonb",
  findJobs:
    "id uuid, type text, queue text, status text, priority smallint, payload jsonb, " +
    "attempts integer, max_attempts smallint, created_at double precision, " +
    "scheduled_at double precision, started_at double precision, completed_at double precision, " +
    "expires_at double precision, dead_reason text, partition_key text, partition_bucket integer, fair_key text, tags text[], " +
    "idempotency_key text, traceparent text, output jsonb, errors jsonb, chain_id uuid, chain_index integer, flow_id uuid, culprit uuid, superseded_by uuid, schedule jsonb, worker text",
  findKey:
    "id uuid, name text, role text, job_types text[], rate_limit_per_second integer, " +
    "created_at double precision, revoked_at double precision, last_used_at double precision",
  findShownJob:
    "id uuid, type text, queue text, status text, priority smallint, " +
    "attempts integer, max_attempts smallint, created_at double precision, " +
    "scheduled_at double precision, started_at double precision, completed_at double precision, " +
    "expires_at double precision, dead_reason text, partition_key text, partition_bucket integer, fair_key text, tags text[], " +
    "idempotency_key text, traceparent text, chain_id uuid, chain_index integer, flow_id uuid, culprit uuid, superseded_by uuid, schedule jsonb, worker text, errors jsonb, waiting_for jsonb, " +
    "payload_text text, output_text text, closed_at double precision, lease_expires_at double precision",
  findStates: "id uuid, status text, attempts integer, errors jsonb",
  foldFlows: "count integer",
  foldLedger: "count integer",
  inspect: "looked integer, wrong integer",
  knowsQueue: "known boolean",
  listAlarmEvents:
    "id bigint, at double precision, alarm text, queue text, job_type text, event text, severity text, " +
    "value double precision, threshold double precision, since double precision, summary text, " +
    "until double precision, actor text, reason text",
  listDeliveries:
    "seq bigint, id uuid, target text, alarm text, queue text, job_type text, notice_type text, " +
    "created_at double precision, state text, tries integer, next_try_at double precision, " +
    "ended_at double precision, status integer, error text",
  listAudit:
    "id bigint, at double precision, actor text, action text, target text, before jsonb, " + "after jsonb",
  listBlockedKeys:
    "partition_key text, bucket integer, since double precision, since_micros bigint, job_id uuid, " +
    "type text, dead_reason text, error text, waiting integer, waiting_is_more boolean",
  listDeadLetters:
    "id uuid, type text, queue text, status text, priority smallint, payload jsonb, " +
    "attempts integer, max_attempts smallint, created_at double precision, " +
    "scheduled_at double precision, started_at double precision, completed_at double precision, " +
    "expires_at double precision, dead_reason text, partition_key text, partition_bucket integer, fair_key text, tags text[], " +
    "idempotency_key text, traceparent text, output jsonb, errors jsonb, chain_id uuid, chain_index integer, flow_id uuid, culprit uuid, superseded_by uuid, schedule jsonb, worker text, died_micros bigint",
  scheduleOutcomes: "name text, outcomes jsonb",
  flowGraph:
    "id uuid, type text, status text, attempts integer, max_attempts smallint, created_at double precision, " +
    "scheduled_at double precision, started_at double precision, ended_at double precision, dead_reason text, " +
    "chain_id uuid, chain_index integer, blockers uuid[], outside integer, failures jsonb, steps jsonb",
  listFlowJobs:
    "id uuid, type text, queue text, status text, priority smallint, payload jsonb, " +
    "attempts integer, max_attempts smallint, created_at double precision, " +
    "scheduled_at double precision, started_at double precision, completed_at double precision, " +
    "expires_at double precision, dead_reason text, partition_key text, partition_bucket integer, fair_key text, tags text[], " +
    "idempotency_key text, traceparent text, output jsonb, errors jsonb, chain_id uuid, chain_index integer, flow_id uuid, culprit uuid, superseded_by uuid, schedule jsonb, worker text",
  listFlows: "page jsonb",
  listJobs:
    "searched_to uuid, id uuid, type text, queue text, status text, priority smallint, payload jsonb, " +
    "attempts integer, max_attempts smallint, created_at double precision, " +
    "scheduled_at double precision, started_at double precision, completed_at double precision, " +
    "expires_at double precision, dead_reason text, partition_key text, partition_bucket integer, fair_key text, tags text[], " +
    "idempotency_key text, traceparent text, output jsonb, errors jsonb, chain_id uuid, chain_index integer, flow_id uuid, culprit uuid, superseded_by uuid, schedule jsonb, worker text",
  listKeys:
    "id uuid, name text, role text, job_types text[], rate_limit_per_second integer, " +
    "created_at double precision, revoked_at double precision, last_used_at double precision",
  listPauses: "kind text, name text, since double precision",
  listSchedules: "schedule jsonb",
  listShownDeadLetters:
    "id uuid, type text, queue text, status text, priority smallint, " +
    "attempts integer, max_attempts smallint, created_at double precision, " +
    "scheduled_at double precision, started_at double precision, completed_at double precision, " +
    "expires_at double precision, dead_reason text, partition_key text, partition_bucket integer, fair_key text, tags text[], " +
    "idempotency_key text, traceparent text, errors jsonb, chain_id uuid, chain_index integer, flow_id uuid, culprit uuid, superseded_by uuid, schedule jsonb, worker text, closed_at double precision, died_micros bigint",
  listShownJobs:
    "searched_to uuid, id uuid, type text, queue text, status text, priority smallint, " +
    "attempts integer, max_attempts smallint, created_at double precision, " +
    "scheduled_at double precision, started_at double precision, completed_at double precision, " +
    "expires_at double precision, dead_reason text, partition_key text, partition_bucket integer, fair_key text, tags text[], " +
    "idempotency_key text, traceparent text, errors jsonb, chain_id uuid, chain_index integer, flow_id uuid, culprit uuid, superseded_by uuid, schedule jsonb, worker text, payload_text text",
  liveWorkers:
    "worker_id text, kind text, queues text[], started_at double precision, seen_at double precision, " +
    "expires_at double precision",
  mendStamps: "count integer",
  openBreaker: "changed boolean",
  pause: "changed boolean",
  pauseSchedule: "found boolean",
  planSlots: "planned integer",
  withMenuCounts: "menu_counts json, is_empty boolean, run jsonb",
  ping:
    "at double precision, running_since double precision, drained_at double precision, " +
    "reaped_at double precision, watched_at double precision, is_read_only boolean",
  prune: "count integer",
  putSchedule: "answer text",
  pruneDeliveries: "given_up integer, pruned integer",
  listRounds:
    "id bigint, kind text, queue text, started_at double precision, ended_at double precision, claimed integer, " +
    "completed integer, failed integer, released integer, lost integer, reason text, message text, steps jsonb",
  overview:
    "at double precision, since double precision, queues json, gaps json, marks json, firing json, pauses json, " +
    "next_slots json, durations json, bounds double precision[]",
  queueNumbers:
    "priorities json, oldest_due_seconds double precision, paused_since double precision, keys json, blocked json, policy json",
  typeNumbers:
    "type text, since double precision, enqueued bigint, completed bigint, failed bigint, retried bigint, died bigint, " +
    "durations jsonb, bounds double precision[], running bigint, started bigint, paused_since double precision, " +
    "breaker_opened_at double precision, breaker_closed_at double precision, breaker_step smallint",
  readHistory: "at double precision, since double precision, queues json, gaps json, marks json",
  raiseCacheProbe: "number bigint",
  readAlarms: "alarms jsonb, targets jsonb, silences jsonb",
  reapExpired: "count integer",
  reapLeases: "returned integer, buried integer",
  recentAttempts: "completed bigint, failed bigint, is_on_trial boolean",
  recentMinutes:
    "minute double precision, queue text, type text, enqueued bigint, completed bigint, " +
    "failed bigint, expired bigint, ready bigint",
  recordEnqueueErrors: "record_enqueue_errors void",
  readCacheProbe: "number bigint",
  recordRound: "id bigint",
  recordRoundAndLook: "id bigint, due_ms double precision",
  nextDue: "due_ms double precision, upkeep_ms double precision",
  look: "waiting json, has_due_runs boolean, due_ms double precision, upkeep_ms double precision",
  registerPuller:
    "worker_id text, kind text, queues text[], started_at double precision, seen_at double precision, " +
    "expires_at double precision",
  removeWorker: "removed boolean",
  replay: "changed jsonb",
  replayMany: "queue text, replayed bigint",
  requireSchemaVersion: "version integer",
  resumeSchedule: "found boolean",
  runSchedule: "job_id uuid",
  schedulesToPlan: "answer json",
  resolve: "changed jsonb",
  resolveQueues: "count integer",
  resume: "changed boolean",
  revokeKey:
    "id uuid, name text, role text, job_types text[], rate_limit_per_second integer, " +
    "created_at double precision, revoked_at double precision, last_used_at double precision",
  searchAudit:
    "searched_to bigint, id bigint, at double precision, actor text, action text, target text, before jsonb, after jsonb",
  sendSignal: "is_first boolean",
  settle: "statuses text[]",
  settleDeliveries: "settled integer",
  settleOne: "changed jsonb",
  silenceAlarm: "silence_alarm void",
  sweepBlocked: "count integer",
  snapshot:
    "at double precision, groups json, minutes json, rounds json, running_since double precision, " +
    "open_breakers json, live_workers integer, expired_lease_seconds double precision, " +
    "oldest_transaction json, tables json, claim_ms double precision, enqueue_errors json, " +
    "impossible_states json, blocked_keys json, idle_flows json",
};
