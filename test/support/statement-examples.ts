// Each statement with every kind of parameter that it takes, for the contract test.
import type { NewJob } from "../../src/core/job.ts";
import * as statements from "../../src/core/sql/index.ts";
import type { Statement } from "../../src/core/sql/statement.ts";
import { firing } from "./alarms.ts";
import { noLease } from "./jobs.ts";
import { newSchedule } from "./schedules.ts";

const id = "01900000-0000-7000-8000-000000000000";
const held = { id, leaseKey: noLease };
const rated = { type: "b", limits: { rate: { limit: 1, perSeconds: 60 } } };

export const fullJob: NewJob = {
  type: "echo",
  payload: { a: 1 },
  queue: "q",
  priority: 1,
  maxAttempts: 1,
  scheduledAt: new Date(),
  expiresAt: new Date(Date.now() + 3_600_000), // later than the run ends
  idempotencyKey: "k",
  partitionKey: "p",
  traceparent: "t",
  tags: ["x"],
};
const { idempotencyKey: _key, ...manyOptions } = fullJob;

const deadFilter = {
  type: "a",
  reason: "fatal",
  fingerprint: "00ff00ff00ff00ff",
  queue: "q",
  until: new Date(),
} as const;
const answer = { target: "ops", urlHash: "h", status: 200, error: null, retryInSeconds: 1.5 };

type Name = keyof typeof statements;
export const examples = {
  addKey: [
    statements.addKey("me", {
      name: "n",
      role: "producer",
      jobTypes: ["a"],
      rateLimitPerSecond: 1,
      keyHash: "ab".repeat(32),
    }),
    statements.addKey("me", {
      name: "n",
      role: "viewer",
      jobTypes: null,
      rateLimitPerSecond: 1,
      keyHash: "ab".repeat(32),
    }),
  ],
  addPartitions: [statements.addPartitions()],
  advanceCursors: [statements.advanceCursors()],
  checkReach: [statements.checkReach()],
  mendStamps: [statements.mendStamps()],
  applyCodeSchedules: [
    statements.applyCodeSchedules("sum", [newSchedule]),
    statements.applyCodeSchedules("none", []),
  ],
  auditTestNotice: [statements.auditTestNotice("me", [{ target: "ops", status: 200 }])],
  backlog: [statements.backlog({ types: ["a"], cap: 10 })],
  books: [statements.books()],
  cancel: [statements.cancel(id), statements.cancel(id, { types: ["a"], running: true })],
  cancelFlow: [statements.cancelFlow("me", id)],
  changeAlarms: [
    statements.changeAlarms([], []),
    statements.changeAlarms(
      [
        { state: firing, version: undefined, notice: { type: "alarm.firing" } },
        { state: { ...firing, queue: "q" }, version: 1, notice: null },
      ],
      [{ name: "ops", urlHash: "h" }],
    ),
  ],
  checkpoint: [
    statements.checkpoint([], { seconds: 60 }),
    statements.checkpoint(
      [
        {
          job: held,
          steps: [
            { name: "a", value: { n: 1 } },
            { name: "b", seconds: 1.5 },
          ],
        },
      ],
      { seconds: 60 },
    ),
  ],
  checkpointOne: [
    statements.checkpointOne(held, [], { seconds: 60 }),
    statements.checkpointOne(held, [{ name: "a", value: 1, took_ms: 12.5 }], { seconds: 60 }),
  ],
  claim: [
    statements.claim({ queue: "q", types: ["a", "b"], limit: 1, leaseSeconds: 0.5 }),
    statements.claim({ queue: "q", types: [], limit: 1, leaseSeconds: 60, worker: "w" }),
    statements.claim({
      queue: "q",
      types: [
        "a",
        { type: "b", leaseSeconds: 90, limits: { concurrency: 2, rate: { limit: 1, perSeconds: 60 } } },
      ],
      limit: 1,
      leaseSeconds: 60,
      maxBytes: 1,
      run: 10,
      buckets: [0, 359],
      owners: [0, 1],
      policy: { onDead: "pass", concurrency: 4, secondsApart: 0.5 },
      registers: true,
      stepTypes: ["b"],
    }),
  ],
  claimDeliveries: [
    statements.claimDeliveries({ targets: [{ name: "ops", urlHash: "h" }], limit: 1, leaseSeconds: 60 }),
  ],
  closeBreakerByProbe: [statements.closeBreakerByProbe(held)],
  completeOne: [statements.completeOne(held, null), statements.completeOne(held, { a: [1] })],
  advanceDeadRun: [
    statements.advanceDeadRun("1", { seconds: 1, ahead: {}, skips: [{ jobId: id, reason: "r" }] }),
  ],
  advanceDeadRuns: [statements.advanceDeadRuns({ seconds: 1 })],
  countDead: [statements.countDead({}), statements.countDead(deadFilter)],
  findDeadRun: [statements.findDeadRun("1")],
  foldDeaths: [statements.foldDeaths({ limit: 1 })],
  listDeadGroups: [
    statements.listDeadGroups({ limit: 1 }),
    statements.listDeadGroups({ type: "a", reason: "fatal", queue: "q", limit: 1 }),
  ],
  listDeadRuns: [statements.listDeadRuns({ limit: 1 }), statements.listDeadRuns({ before: "1", limit: 1 })],
  startDeadRun: [
    statements.startDeadRun("me", { action: "discard" }),
    statements.startDeadRun("me", {
      ...deadFilter,
      ...{ action: "replay", maxJobs: 1, perMinute: 1, patch: { a: null }, note: "n" },
    }),
  ],
  stopDeadRun: [statements.stopDeadRun("me", "1")],
  depths: [statements.depths()],
  discard: [statements.discard("me", { id }), statements.discard("me", { id, reason: "r" })],
  dropOldestDay: [statements.dropOldestDay()],
  enqueue: [statements.enqueue([{ type: "echo", payload: {} }, fullJob]), statements.enqueue([])],
  enqueueMany: [
    statements.enqueueMany("echo", [{ a: 1 }, {}], {}),
    statements.enqueueMany("echo", [], manyOptions),
  ],
  enqueueWithOutcome: [
    statements.enqueueWithOutcome({
      type: "echo",
      payload: {},
      debounce: { key: "k", mode: "merge", seconds: 1, maxItems: 2 },
    }),
  ],
  enqueueOne: [statements.enqueueOne({ type: "echo", payload: {} }), statements.enqueueOne(fullJob)],
  extend: [statements.extend([held], { seconds: 1.5 }), statements.extend([], { seconds: 1 })],
  extendOne: [statements.extendOne(held, { seconds: 1.5 })],
  findCancelRequests: [statements.findCancelRequests([id])],
  findOutcomes: [statements.findOutcomes([id])],
  findSchedule: [statements.findSchedule("nightly")],
  findSignal: [statements.findSignal("go", "1")],
  listSteps: [statements.listSteps(id)],
  findSteps: [statements.findSteps([id]), statements.findSteps([])],
  findJob: [
    statements.findJob(id),
    statements.findJob(id, { types: [{ type: "a", limits: { concurrency: 1 } }] }),
  ],
  findShownJob: [statements.findShownJob(id, { types: [], hiddenTypes: [] })],
  findStates: [statements.findStates([id]), statements.findStates([])],
  findKey: [statements.findKey("ab".repeat(32))],
  foldFlows: [statements.foldFlows({ limit: 1 })],
  resolveQueues: [statements.resolveQueues()],
  sweepBlocked: [statements.sweepBlocked({ limit: 1 })],
  foldLedger: [statements.foldLedger({ limit: 1 })],
  knowsQueue: [statements.knowsQueue("q")],
  listAlarmEvents: [
    statements.listAlarmEvents({ limit: 1 }),
    statements.listAlarmEvents({ before: "7", limit: 1 }),
  ],
  listDeliveries: [
    statements.listDeliveries({ limit: 1 }),
    statements.listDeliveries({ before: "7", limit: 1 }),
  ],
  listAudit: [statements.listAudit({ limit: 1 }), statements.listAudit({ before: "1", limit: 1 })],
  listBlockedKeys: [
    statements.listBlockedKeys("q", { limit: 1 }),
    statements.listBlockedKeys("q", { after: { sinceMicros: "1", jobId: id }, limit: 1 }),
  ],
  listDeadLetters: [
    statements.listDeadLetters({ limit: 1 }),
    statements.listDeadLetters({
      ...deadFilter,
      ...{ since: new Date(), before: { diedMicros: "1", jobId: id }, limit: 1 },
    }),
  ],
  listJobs: [
    statements.listJobs({ limit: 1 }),
    statements.listJobs({ types: ["a"], status: "dead", queue: "q", tag: "t", before: id, limit: 1 }),
    statements.listJobs({
      ...{
        partitionKey: "p",
        fairKey: "f",
        idempotencyKey: "k",
        since: new Date(),
        until: new Date(),
        limit: 1,
      },
    }),
  ],
  inspect: [statements.inspect()],
  listKeys: [statements.listKeys({ limit: 1 })],
  listPauses: [statements.listPauses()],
  listShownDeadLetters: [statements.listShownDeadLetters({ ...deadFilter, limit: 1 })],
  listShownJobs: [statements.listShownJobs({ limit: 1, textLength: 10, hiddenTypes: ["a"] })],
  listSchedules: [statements.listSchedules({ limit: 1 }), statements.listSchedules({ after: "a", limit: 1 })],
  liveWorkers: [statements.liveWorkers(), statements.liveWorkers({ queue: "q" })],
  openBreaker: [statements.openBreaker("a")],
  pause: [statements.pause("me", { queue: "q" }), statements.pause("me", { type: "a" })],
  pauseSchedule: [statements.pauseSchedule("me", "nightly")],
  planSlots: [
    statements.planSlots([]),
    statements.planSlots([{ number: 1, from: "2026-01-01Z", slotsMs: [1, 2], refillMs: 1 }]),
  ],
  ping: [statements.ping()],
  withMenuCounts: [statements.withMenuCounts(statements.findDeadRun("1"))],
  prune: [statements.prune({ limit: 1 })],
  putSchedule: [statements.putSchedule("me", { ...newSchedule, paused: true })],
  pruneDeliveries: [statements.pruneDeliveries({ giveUpDays: 3, keepDays: 30, limit: 1 })],
  listRounds: [
    statements.listRounds({ limit: 1 }),
    statements.listRounds({ kind: "watch", before: "7", limit: 1 }),
  ],
  overview: [statements.overview({ range: "24h", queues: 2 })],
  queueNumbers: [statements.queueNumbers("default", { keys: 3, looked: 10 })],
  typeNumbers: [
    statements.typeNumbers([]),
    statements.typeNumbers([{ type: "echo", limits: { rate: { limit: 5, perSeconds: 60 } } }]),
  ],
  readHistory: [statements.readHistory({ range: "3h", queues: 2 })],
  raiseCacheProbe: [statements.raiseCacheProbe()],
  readAlarms: [statements.readAlarms()],
  durations: [statements.durations({ pairs: 1 })],
  recentMinutes: [statements.recentMinutes({ pairs: 1 })],
  recentAttempts: [statements.recentAttempts("a")],
  recordEnqueueErrors: [statements.recordEnqueueErrors(1)],
  readCacheProbe: [statements.readCacheProbe()],
  recordRound: [
    statements.recordRound({ kind: "drain", queue: "q", ms: 1.5, report: { claimed: 1, end: "empty" } }),
    statements.recordRound({ kind: "reap", ms: 0, report: {} }),
  ],
  recordRoundAndLook: [
    statements.recordRoundAndLook({ kind: "nudge", queue: "q", ms: 1, report: {} }, []),
    statements.recordRoundAndLook({ kind: "nudge", queue: "q", ms: 1, report: {} }, [rated]),
  ],
  look: [
    statements.look({ types: [{ type: "a" }, rated], cap: 10, upkeep: true, seconds: 1 }),
    statements.look({ types: [], cap: 1, upkeep: false, seconds: 60 }),
  ],
  nextDue: [statements.nextDue([]), statements.nextDue([rated])],
  reapExpired: [statements.reapExpired({ limit: 1 })],
  reapLeases: [
    statements.reapLeases({ limit: 1 }),
    statements.reapLeases({
      limit: 1,
      backoffs: { a: { baseSeconds: 1, maxSeconds: 2, jitterSeconds: 0 } },
    }),
  ],
  registerPuller: [statements.registerPuller("w", ["q", "r"])],
  removeWorker: [statements.removeWorker("w")],
  replay: [statements.replay("me", { id }), statements.replay("me", { id, payload: { a: 1 } })],
  replayMany: [
    statements.replayMany("me", { type: "a", count: 1 }),
    statements.replayMany("me", { type: "a", reason: "fatal", count: 1 }),
  ],
  resumeSchedule: [statements.resumeSchedule("me", "nightly")],
  runSchedule: [statements.runSchedule("me", "nightly")],
  schedulesToPlan: [
    statements.schedulesToPlan({ limit: 1 }),
    statements.schedulesToPlan({ limit: 1, checksum: "sum" }),
  ],
  resolve: [
    statements.resolve(id, { output: null }),
    statements.resolve(id, { output: { a: 1 }, types: ["a"] }),
  ],
  searchAudit: [
    statements.searchAudit({ limit: 1 }),
    statements.searchAudit({ before: "9", actor: "a", action: "b", target: "c", limit: 1 }),
  ],
  sendSignal: [statements.sendSignal({ name: "go", key: "k", payload: { a: 1 } })],
  deleteSchedule: [statements.deleteSchedule("me", "nightly")],
  deleteFlow: [statements.deleteFlow("me", id)],
  enqueueFlow: [
    statements.enqueueFlow([{ ref: "a", job: { type: "echo", payload: {} }, after: [] }]),
    statements.enqueueFlow(
      [
        { ref: "a", job: fullJob, after: [] },
        { ref: "b", job: { type: "echo", payload: {} }, after: { parts: ["a"] } },
      ],
      { idempotencyKey: "k" },
    ),
  ],
  findBlockers: [statements.findBlockers(id, { from: 0, limit: 10 })],
  findChain: [statements.findChain(id)],
  findJobs: [statements.findJobs([id])],
  findFlow: [statements.findFlow(id)],
  scheduleOutcomes: [
    statements.scheduleOutcomes({ limit: 1 }),
    statements.scheduleOutcomes({ after: "a", limit: 1 }),
  ],
  flowGraph: [
    statements.flowGraph(id, { limit: 1, hiddenTypes: [] }),
    statements.flowGraph(id, { after: id, limit: 1, hiddenTypes: ["a"] }),
  ],
  listFlowJobs: [
    statements.listFlowJobs(id, { limit: 1 }),
    statements.listFlowJobs(id, { after: id, limit: 1 }),
  ],
  listFlows: [
    statements.listFlows({ limit: 1 }),
    statements.listFlows({ status: "dead", before: id, limit: 1 }),
  ],
  requireSchemaVersion: [statements.requireSchemaVersion()],
  resume: [statements.resume("me", { queue: "q" }), statements.resume("me", { type: "a" })],
  revokeKey: [statements.revokeKey("me", id)],
  settle: [
    statements.settle([]),
    statements.settle([
      { job: held, outcome: { kind: "complete", output: null } },
      { job: held, outcome: { kind: "retry", message: "m", retryInSeconds: 1 } },
      { job: held, outcome: { kind: "bury", message: "m" } },
      { job: held, outcome: { kind: "snooze", retryInSeconds: 1 } },
      { job: held, outcome: { kind: "release" } },
      { job: held, outcome: { kind: "suspend", wait: { seconds: 1, signal: { name: "go", key: "1" } } } },
    ]),
  ],
  settleOne: [
    statements.settleOne({ job: held, outcome: { kind: "complete", output: null } }),
    statements.settleOne({ job: held, outcome: { kind: "bury", message: "m" } }),
  ],
  settleDeliveries: [
    statements.settleDeliveries([]),
    statements.settleDeliveries([
      { delivery: { id, tries: 1 }, ...answer, outcome: "delivered" },
      { delivery: null, ...answer, outcome: "gone" },
    ]),
  ],
  silenceAlarm: [
    statements.silenceAlarm("me", { alarm: "dead_letters", until: new Date() }),
    statements.silenceAlarm("me", { alarm: "dead_letters", until: new Date(), reason: "planned" }),
  ],
  snapshot: [statements.snapshot(), statements.snapshot({ windows: [5, 30] })],
} satisfies Record<Name, Statement<unknown>[]>;
