// What every statement answers, as a schema. The compiler holds each schema to the type that the statement declares, and
// the contract test parses real answers with it: a wrong cast in a decoder shows in one of the two.
import * as z from "zod";
import { alarmNames, severities } from "../../src/core/alarms/alarm.ts";
import { runActions, runStates } from "../../src/core/dead-letters.ts";
import { deadReasons, jobStatuses } from "../../src/core/job.ts";
import { enqueueOutcomes } from "../../src/core/job-options.ts";
import { roles } from "../../src/core/key.ts";
import { missedRules, overlapRules } from "../../src/core/policy/slots.ts";
import { roundKinds } from "../../src/core/snapshot.ts";
import type * as statements from "../../src/core/sql/index.ts";
import type { Statement } from "../../src/core/sql/statement.ts";
import { workerKinds } from "../../src/core/worker-kinds.ts";

type Statements = typeof statements;
type AnswerOf<Name extends keyof Statements> = Statements[Name] extends (
  ...parameters: never[]
) => Statement<infer Answer>
  ? Answer
  : never;

const text = z.string();
const count = z.int().nonnegative();
const change = z.int();
// Any 128 bits: the key of a lease is a number and random bits, without the version that a UUID has.
const id = z.guid();
const time = z.date();
const seconds = z.number();
const nothing = z.custom<undefined>((value) => value === undefined);
const none = z.null();
const flag = z.boolean();
const payload = z.record(text, z.json());
const status = z.enum(jobStatuses);
const outcome = z.enum(enqueueOutcomes);

const deadRun = z.strictObject({
  ...{ id: text, action: z.enum(runActions), type: text.nullable(), reason: z.enum(deadReasons).nullable() },
  ...{ fingerprint: text.nullable(), queue: text.nullable(), until: time, maxJobs: count.nullable() },
  ...{ perMinute: count.nullable(), patch: payload.nullable(), note: text.nullable(), actor: text },
  ...{ state: z.enum(runStates), matched: count, done: count, skipped: count, remaining: count },
  ...{
    skips: z.array(z.strictObject({ jobId: id, reason: text })),
    startedAt: time,
    endedAt: time.nullable(),
  },
});
const runOutcomes = z.strictObject({
  ...{ jobs: count, completed: count, dead: count, waiting: count, processing: count, other: count },
});
const shownRun = deadRun.extend({ outcomes: runOutcomes.nullable() });
const patchedJob = z.strictObject({ id, payload, fault: text.nullable() });
const check = z.strictObject({ ahead: z.record(text, z.json()), type: text, jobs: z.array(patchedJob) });
const runStep = z.strictObject({ runId: text, queues: z.array(text), check: check.nullable() }).nullable();

const error = z.strictObject({
  attempt: count,
  at: z.iso.datetime({ offset: true }),
  message: text,
  started_at: z.exactOptional(z.iso.datetime({ offset: true })),
  worker: z.exactOptional(text.nullable()),
  stack: z.exactOptional(text.nullable()),
  causes: z.exactOptional(z.array(z.strictObject({ message: text, stack: text.nullable() }))),
});
const jobSchedule = z.strictObject({ name: text, slot: z.iso.datetime(), missed: flag });
const job = z.strictObject({
  id,
  type: text,
  queue: text,
  status,
  priority: z.int(),
  payload,
  attempts: count,
  maxAttempts: count,
  createdAt: time,
  scheduledAt: time,
  startedAt: time.nullable(),
  completedAt: time.nullable(),
  expiresAt: time,
  errors: z.array(error),
  deadReason: z.enum(deadReasons).nullable(),
  partitionKey: text.nullable(),
  partitionBucket: z.int().min(0).max(359).nullable(),
  fairKey: text.nullable(),
  tags: z.array(text),
  idempotencyKey: text.nullable(),
  traceparent: text.nullable(),
  output: z.json(),
  chainId: id.nullable(),
  chainIndex: count.nullable(),
  flowId: id.nullable(),
  culprit: id.nullable(),
  supersededBy: id.nullable(),
  schedule: jobSchedule.nullable(),
  worker: text.nullable(),
});
const shownJob = job.omit({ payload: true, output: true });
const at = z.iso.datetime({ offset: true });
const limit = { kind: z.literal("limit") };
const waitingFor = z.union([
  z.strictObject({ kind: z.literal("time"), at, attempt: count }),
  z.strictObject({
    ...{
      kind: z.literal("key"),
      holder: z.enum(["dead", "scheduled", "leased", "ready", "waiting", "blocked"]),
    },
    ...{ jobIds: z.array(id), at: z.exactOptional(at), attempt: z.exactOptional(count) },
  }),
  z.strictObject({ kind: z.literal("jobs"), count, jobIds: z.array(id), at: z.exactOptional(at) }),
  z.strictObject({ kind: z.literal("signal"), name: text, key: text, at: z.exactOptional(at) }),
  z.strictObject({ kind: z.literal("pause"), paused: z.enum(["queue", "type"]), since: at }),
  z.strictObject({ kind: z.literal("breaker"), state: z.enum(["open", "closing"]), since: at }),
  z.strictObject({ ...limit, limited: z.literal("concurrency"), max: count }),
  z.strictObject({ ...limit, limited: z.literal("rate"), max: count, seconds }),
  z.strictObject({ ...limit, limited: z.literal("share_concurrency"), max: count, fairKey: text }),
  z.strictObject({ ...limit, limited: z.literal("share_rate"), at, fairKey: text }),
  z.strictObject({ kind: z.literal("turn"), isIsolated: flag }),
]);
const changedJob = z
  .strictObject({ applied: flag, job, leaseExpiresAt: time.nullable(), cancelRequested: flag })
  .nullable();
const blockers = z.record(
  text,
  z.array(
    z.union([
      z.strictObject({ jobId: text, status: z.literal("completed"), output: z.json() }),
      z.strictObject({ jobId: text, status: z.enum(["dead", "cancelled", "discarded"]), output: none }),
    ]),
  ),
);
const steps = z.record(text, z.json());
const jobSteps = z.array(
  z.strictObject({
    ...{ name: text, kind: z.enum(["run", "sleep", "wait", "all"]) },
    ...{ startedAt: time.nullable(), endedAt: time.nullable(), value: z.json().exactOptional() },
  }),
);
const claimedJob = z.strictObject({
  id,
  leaseKey: id,
  type: text,
  payload,
  attempt: count,
  maxAttempts: count,
  abandonments: count,
  leaseExpiresAt: time,
  priority: z.int(),
  createdAt: time,
  partitionKey: text.nullable(),
  fairKey: text.nullable(),
  runKey: text.nullable(),
  mayRelease: flag,
  isLinked: flag,
  traceparent: text.nullable(),
  tags: z.array(text),
  errors: z.array(error),
  blockers: blockers.nullable(),
  schedule: jobSchedule.nullable(),
  isProbe: flag,
  isTrial: flag,
  stored: z.strictObject({ steps, nowMs: z.number() }).nullable(),
});
const settled = z.strictObject({ id, status: status.nullable(), applied: flag });
const counts = {
  enqueued: count,
  pending: count,
  scheduled: count,
  leased: count,
  completed: count,
  failed: count,
  dead: count,
  discarded: count,
  cancelled: count,
  expired: count,
  blocked: count,
};
const flow = z.strictObject({
  flowId: id,
  status: z.enum(["running", "completed", "dead", "cancelled"]),
  total: count,
  counts: z.record(status, count),
  createdAt: time,
});
const group = { queue: text, type: text, priority: z.int(), ...counts };
const minute = z.strictObject({
  ...{ minute: time, queue: text, type: text },
  ...{ enqueued: count, completed: count, failed: count, expired: count, ready: change },
});
const key = z.strictObject({
  id,
  name: text,
  role: z.enum(roles),
  jobTypes: z.array(text).nullable(),
  rateLimitPerSecond: count,
  createdAt: time,
  revokedAt: time.nullable(),
  lastUsedAt: time.nullable(),
});
const alarmKey = { alarm: z.enum(alarmNames), queue: text.nullable(), jobType: text.nullable() };
const alarms = z.strictObject({
  alarms: z.array(
    z.strictObject({
      version: count,
      state: z.strictObject({
        ...alarmKey,
        phase: z.enum(["ok", "pending", "firing"]),
        since: time,
        changedAt: time,
        recent: z.array(flag),
        clearRounds: count,
        notified: z.enum(["ok", "firing"]),
        notifiedAt: time.nullable(),
        severity: z.enum(severities),
        value: z.number().nullable(),
        threshold: z.number(),
        summary: text,
      }),
    }),
  ),
  targets: z.array(
    z.strictObject({
      ...{ name: text, urlHash: text.nullable(), goneSince: time.nullable(), failingSince: time.nullable() },
      ...{ deliveredAt: time.nullable(), status: count.nullable(), error: text.nullable(), pending: count },
    }),
  ),
  silences: z.array(
    z.strictObject({ alarm: text, until: time, actor: text.nullable(), reason: text.nullable() }),
  ),
});
const round = z.strictObject({
  ...{ kind: z.enum(roundKinds), queue: text.nullable(), startedAt: time, endedAt: time },
  ...{ claimed: count, completed: count, failed: count, released: count, lost: count },
  ...{ reason: text, message: text.nullable(), steps: payload.nullable() },
});
const snapshot = z.strictObject({
  at: time,
  groups: z.array(z.strictObject({ ...group, oldestDueSeconds: seconds.nullable() })),
  minutes: z.array(minute),
  rounds: z.array(z.strictObject({ kind: z.enum(roundKinds), endedAt: time, hasFailed: flag })),
  recentRounds: z.array(round),
  runningSince: time.nullable(),
  openBreakers: z.array(z.strictObject({ type: text, openedAt: time })),
  liveWorkers: count,
  expiredLeaseSeconds: seconds,
  oldestTransaction: z
    .strictObject({ seconds, source: z.enum(["session", "prepared", "slot", "standby"]) })
    .nullable(),
  tables: z.array(z.strictObject({ table: text, deadRows: count, vacuumedAt: time.nullable() })),
  claimMs: z.number().nullable(),
  enqueueErrors: z.array(z.strictObject({ minute: time, errors: count })),
  impossibleStates: z.strictObject({
    count,
    example: z.strictObject({ kind: z.enum(["job", "lease", "done"]), id, what: text }).nullable(),
  }),
  blockedKeys: z.array(
    z.strictObject({ queue: text, keys: count, since: time.nullable(), jobId: id.nullable() }),
  ),
  idleFlows: z.array(z.strictObject({ flowId: id, since: time })),
});
const worker = z.strictObject({
  ...{ id: text, kind: z.enum(workerKinds), queues: z.array(text) },
  ...{ startedAt: time, seenAt: time, expiresAt: time },
});
const bucket = z.strictObject({
  ...{
    queue: text,
    type: text,
    measure: z.enum(["waiting", "processing"]),
    bucket: count,
    jobs: count,
    seconds,
  },
});

const missed = z.enum(missedRules);
const schedule = z.strictObject({
  ...{ name: text, cron: text, timeZone: text, type: text, payload, queue: text, priority: z.int() },
  ...{
    maxAttempts: count,
    missed,
    overlap: z.enum(overlapRules),
    paused: flag,
    source: z.enum(["api", "code"]),
  },
  ...{ nextSlots: z.array(time), lastSlot: time.nullable(), lastJobId: id.nullable() },
});
const toPlan = z.strictObject({
  ...{ number: count, cron: text, timeZone: text, missed, from: text, fromMs: z.number(), nowMs: z.number() },
});
const due = { dueMs: z.number().nullable(), upkeepMs: z.number().nullable() };
const percentiles = z.strictObject({ jobs: count, p50Seconds: seconds, p95Seconds: seconds });
const series = z.array(z.int().nullable());
const history = z.strictObject({
  ...{ range: z.enum(["30m", "3h", "24h"]), minutes: count, starts: z.array(time), recordedSince: time },
  queues: z.array(
    z.strictObject({
      ...{ queue: text, enqueued: series, completed: series, failed: series, retried: series },
      ...{ died: series, due: series },
    }),
  ),
  gaps: z.array(z.strictObject({ from: time, to: time })),
  marks: z.array(
    z.strictObject({ at: time, kind: z.enum(["pause", "resume", "firing", "resolved"]), about: text }),
  ),
});

export const answers = {
  addKey: key,
  addPartitions: count,
  advanceCursors: none,
  applyCodeSchedules: z.strictObject({ put: count, removed: count }),
  auditTestNotice: nothing,
  backlog: z.array(z.strictObject({ queue: text, due: count })),
  books: z.array(z.strictObject(group)),
  cancel: changedJob,
  cancelFlow: count.nullable(),
  changeAlarms: z.array(z.strictObject(alarmKey)),
  checkReach: count,
  claim: z.strictObject({
    jobs: z.array(claimedJob),
    hasMore: flag,
    hasLinks: flag,
    settled: z.array(settled),
    workers: z.array(text).nullable(),
  }),
  checkpoint: z.array(z.strictObject({ cancelRequested: flag, steps }).nullable()),
  checkpointOne: z.strictObject({ cancelRequested: flag, steps, nowMs: z.number() }).nullable(),
  claimDeliveries: z.array(z.strictObject({ id: text, target: text, notice: z.json(), tries: count })),
  closeBreakerByProbe: flag,
  completeOne: flag,
  advanceDeadRun: runStep,
  advanceDeadRuns: runStep,
  countDead: z.strictObject({ dead: count, at: time }),
  findDeadRun: shownRun.nullable(),
  foldDeaths: count,
  listDeadGroups: z.strictObject({
    groups: z.array(
      z.strictObject({
        ...{ type: text, reason: z.enum(deadReasons), fingerprint: text, count, firstAt: time, lastAt: time },
        ...{ newestId: id, error: text.nullable(), pattern: text.nullable(), hours: z.array(count) },
      }),
    ),
    totalGroups: count,
    totalDead: count,
  }),
  listDeadRuns: z.array(deadRun.extend({ outcomes: z.exactOptional(runOutcomes.nullable()) })),
  startDeadRun: deadRun,
  stopDeadRun: z.strictObject({ applied: flag, run: deadRun }).nullable(),
  deleteSchedule: flag,
  deleteFlow: z.enum(["deleted", "running", "waited_for"]).nullable(),
  depths: z.array(z.strictObject({ queue: text, pending: count })),
  discard: changedJob,
  dropOldestDay: text.nullable(),
  durations: z.strictObject({ buckets: z.array(bucket), bounds: z.array(seconds) }),
  enqueue: z.array(
    z.strictObject({
      ...{ id, status, type: text, queue: text, scheduledAt: time, deduplicated: flag },
      ...{ outcome: outcome.nullable(), replacedId: id.nullable() },
    }),
  ),
  enqueueFlow: z.strictObject({
    flowId: id,
    jobs: z.array(z.strictObject({ ref: text, id, status })),
    deduplicated: flag,
  }),
  enqueueMany: z.array(id),
  enqueueOne: id,
  enqueueWithOutcome: z.strictObject({
    ...{ id, outcome: outcome.nullable(), replacedId: id.nullable(), deduplicated: flag },
  }),
  extend: z.array(z.strictObject({ id, leaseExpiresAt: time, cancelRequested: flag })),
  extendOne: changedJob,
  findBlockers: blockers,
  findChain: z.strictObject({ chainId: id, status, output: z.json(), jobs: z.array(id) }).nullable(),
  findFlow: flow.nullable(),
  findCancelRequests: z.array(id),
  findOutcomes: z.array(z.strictObject({ id, status, output: z.json() })),
  findSchedule: schedule.or(nothing),
  findSignal: z.strictObject({ payload: z.json() }).nullable(),
  listSteps: jobSteps,
  findSteps: z.strictObject({ byJob: z.record(id, steps), nowMs: z.number() }),
  findJob: job.extend({ waitingFor: waitingFor.nullable(), steps: jobSteps }).or(nothing),
  findJobs: z.array(job),
  findKey: key.or(nothing),
  findShownJob: shownJob
    .extend({
      ...{ payloadText: text.nullable(), outputText: text.nullable() },
      ...{ closedAt: time.nullable(), leaseExpiresAt: time.nullable(), waitingFor: waitingFor.nullable() },
    })
    .or(nothing),
  findStates: z.array(z.strictObject({ id, status, attempts: count, errors: z.array(error) })),
  scheduleOutcomes: z.array(
    z.strictObject({
      name: text,
      outcomes: z.array(z.strictObject({ slot: time, jobId: id, status: status.nullable() })),
    }),
  ),
  flowGraph: z.array(
    z.strictObject({
      ...{ id, type: text, status, attempts: count, maxAttempts: count, createdAt: time, scheduledAt: time },
      ...{ startedAt: time.nullable(), endedAt: time.nullable(), deadReason: z.enum(deadReasons).nullable() },
      ...{ chainId: id.nullable(), chainIndex: count.nullable(), blockers: z.array(id), outside: count },
      failures: z.array(z.strictObject({ startedAt: time.nullable(), failedAt: time })),
      steps: jobSteps,
    }),
  ),
  foldFlows: count,
  foldLedger: count,
  inspect: z.strictObject({ looked: count, wrong: count }),
  knowsQueue: flag,
  listAlarmEvents: z.array(
    z.strictObject({
      ...{ id: text, at: time, alarm: text, queue: text.nullable(), jobType: text.nullable() },
      event: z.enum(["firing", "resolved", "silenced", "unsilenced"]),
      ...{ severity: z.enum(severities).nullable(), value: z.number().nullable() },
      ...{ threshold: z.number().nullable(), since: time.nullable(), summary: text.nullable() },
      ...{ until: time.nullable(), actor: text.nullable(), reason: text.nullable() },
    }),
  ),
  listDeliveries: z.array(
    z.strictObject({
      ...{ seq: text, id, target: text, alarm: text, queue: text.nullable(), jobType: text.nullable() },
      ...{
        noticeType: text,
        createdAt: time,
        state: z.enum(["pending", "delivered", "given_up"]),
        tries: count,
      },
      ...{
        nextTryAt: time.nullable(),
        endedAt: time.nullable(),
        status: count.nullable(),
        error: text.nullable(),
      },
    }),
  ),
  listAudit: z.array(
    z.strictObject({
      ...{ id: text, at: time, actor: text, action: text, target: text, before: z.json(), after: z.json() },
    }),
  ),
  listBlockedKeys: z.array(
    z.strictObject({
      ...{ partitionKey: text, bucket: count, since: time, jobId: id, type: text },
      ...{ deadReason: z.enum(deadReasons), error: text.nullable(), waiting: count, waitingIsMore: flag },
      position: z.strictObject({ sinceMicros: text, jobId: id }),
    }),
  ),
  listDeadLetters: z.array(
    z.strictObject({ job, position: z.strictObject({ diedMicros: text, jobId: id }) }),
  ),
  listFlowJobs: z.array(job),
  listFlows: z.strictObject({ flows: z.array(flow), next: id.nullable() }),
  listJobs: z.strictObject({ jobs: z.array(job), next: id.nullable() }),
  listKeys: z.array(key),
  listPauses: z.array(z.strictObject({ kind: z.enum(["queue", "type"]), name: text, since: time })),
  listSchedules: z.array(schedule),
  listShownDeadLetters: z.array(
    z.strictObject({
      job: shownJob,
      diedAt: time,
      position: z.strictObject({ diedMicros: text, jobId: id }),
    }),
  ),
  listShownJobs: z.strictObject({
    jobs: z.array(shownJob.extend({ payloadText: text.nullable() })),
    next: id.nullable(),
  }),
  liveWorkers: z.array(worker),
  mendStamps: count,
  openBreaker: flag,
  pause: flag,
  pauseSchedule: flag,
  planSlots: count,
  withMenuCounts: z.strictObject({
    answer: shownRun.nullable(),
    menu: z.strictObject({ dead: count, firing: count, silenced: count }),
  }),
  ping: z.strictObject({
    at: time,
    runningSince: time,
    lastEndedAt: z.strictObject({ drain: time.nullable(), reap: time.nullable(), watch: time.nullable() }),
    isReadOnly: flag,
  }),
  prune: count,
  putSchedule: z.enum(["created", "changed", "in_code"]),
  pruneDeliveries: z.strictObject({ givenUp: count, pruned: count }),
  listRounds: z.array(round.extend({ id: text })),
  overview: z.strictObject({
    history,
    firing: z.array(
      z.strictObject({
        ...{ ...alarmKey, severity: z.enum(severities), since: time, summary: text },
        silencedUntil: time.nullable(),
      }),
    ),
    pauses: z.array(z.strictObject({ kind: z.enum(["queue", "type"]), name: text, since: time })),
    nextSlots: z.array(z.strictObject({ name: text, cron: text, timeZone: text, slot: time })),
    waiting: percentiles.nullable(),
    processing: percentiles.nullable(),
  }),
  queueNumbers: z.strictObject({
    priorities: z.array(
      z.strictObject({
        ...{ priority: z.int(), pending: count, scheduled: count, leased: count, blocked: count },
        ...{ completed: count, dead: count },
      }),
    ),
    ...{ oldestDueSeconds: seconds.nullable(), pausedSince: time.nullable() },
    keys: z.strictObject({
      looked: count,
      top: z.array(
        z.strictObject({ kind: z.enum(["partition", "fair"]), key: text, waiting: count, running: count }),
      ),
    }),
    blockedKeys: count,
    policy: z
      .strictObject({
        onDead: z.enum(["block", "pass"]),
        ...{ concurrency: count.nullable(), secondsApart: seconds.nullable() },
      })
      .nullable(),
  }),
  typeNumbers: z.array(
    z.strictObject({
      ...{
        type: text,
        since: time,
        enqueued: count,
        completed: count,
        failed: count,
        retried: count,
        died: count,
      },
      ...{ waiting: percentiles.nullable(), processing: percentiles.nullable() },
      inUse: z.strictObject({ running: count, started: count }).nullable(),
      pausedSince: time.nullable(),
      breaker: z
        .strictObject({ openedAt: time, closedAt: time.nullable(), step: count.nullable() })
        .nullable(),
    }),
  ),
  readHistory: history,
  raiseCacheProbe: z.int(),
  readAlarms: alarms,
  reapExpired: count,
  reapLeases: z.strictObject({ returned: count, buried: count }),
  recentAttempts: z.strictObject({ completed: count, failed: count, isOnTrial: flag }),
  recentMinutes: z.array(minute),
  recordEnqueueErrors: none,
  readCacheProbe: z.int(),
  recordRound: text,
  recordRoundAndLook: z.strictObject({ id: text, dueMs: z.number().nullable() }),
  nextDue: z.strictObject(due),
  look: z.strictObject({
    ...{ ...due, hasDueRuns: flag, waiting: z.array(z.strictObject({ queue: text, due: count })) },
  }),
  registerPuller: z.strictObject({ puller: worker, workers: z.array(worker) }),
  removeWorker: flag,
  replay: changedJob,
  replayMany: z.array(z.strictObject({ queue: text, replayed: count })),
  requireSchemaVersion: count,
  resumeSchedule: flag,
  runSchedule: id.nullable(),
  schedulesToPlan: z.strictObject({ apply: flag, schedules: z.array(toPlan) }),
  resolve: changedJob,
  resume: flag,
  revokeKey: key.or(nothing),
  searchAudit: z.strictObject({
    entries: z.array(
      z.strictObject({
        ...{ id: text, at: time, actor: text, action: text, target: text, before: z.json(), after: z.json() },
      }),
    ),
    searchedTo: text.nullable(),
  }),
  sendSignal: flag,
  settle: z.array(settled),
  settleDeliveries: count,
  settleOne: changedJob,
  silenceAlarm: nothing,
  resolveQueues: count,
  snapshot,
  sweepBlocked: count,
} satisfies { [Name in keyof Statements]: z.ZodType<AnswerOf<Name>> };
