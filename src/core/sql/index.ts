// Every statement that Sluice runs, by name.
export { advanceDeadRun, advanceDeadRuns } from "./advance-dead-runs.ts";
export { auditTestNotice, changeAlarms, listAlarmEvents, readAlarms, silenceAlarm } from "./alarms.ts";
export { listAudit, searchAudit } from "./audit.ts";
export { listBlockedKeys } from "./blocked-keys.ts";
export { findBlockers, findChain, findOutcomes } from "./blockers.ts";
export { books, depths } from "./books.ts";
export { closeBreakerByProbe, openBreaker, recentAttempts } from "./breaker.ts";
export { raiseCacheProbe, readCacheProbe } from "./cache-probe.ts";
export { cancel, findCancelRequests } from "./cancel.ts";
export { checkpoint, checkpointOne, findSteps, listSteps } from "./checkpoint.ts";
export { claim } from "./claim.ts";
export { applyCodeSchedules } from "./code-schedules.ts";
export { countDead, foldDeaths, listDeadGroups } from "./dead-groups.ts";
export { findDeadRun, listDeadRuns, startDeadRun, stopDeadRun } from "./dead-runs.ts";
export { claimDeliveries, listDeliveries, pruneDeliveries, settleDeliveries } from "./deliver.ts";
export { discard } from "./discard.ts";
export { enqueue, enqueueMany, enqueueOne, enqueueWithOutcome } from "./enqueue.ts";
export { recordEnqueueErrors } from "./enqueue-errors.ts";
export { enqueueFlow } from "./enqueue-flow.ts";
export { extend, extendOne } from "./extend.ts";
export { flowGraph } from "./flow-graph.ts";
export { cancelFlow, deleteFlow, findFlow, listFlowJobs, listFlows } from "./flows.ts";
export { readHistory } from "./history.ts";
export {
  findJob,
  findJobs,
  findStates,
  listJobs,
} from "./jobs.ts";
export { addKey, findKey, listKeys, revokeKey } from "./keys.ts";
export { listDeadLetters, listShownDeadLetters } from "./list.ts";
export { withMenuCounts } from "./menu-counts.ts";
export { look, nextDue } from "./next-due.ts";
export { overview } from "./overview.ts";
export { knowsQueue, listPauses, pause, resume } from "./pause.ts";
export { ping } from "./ping.ts";
export { planSlots, schedulesToPlan } from "./plan-slots.ts";
export { queueNumbers } from "./queue-numbers.ts";
export {
  addPartitions,
  advanceCursors,
  checkReach,
  dropOldestDay,
  foldFlows,
  foldLedger,
  inspect,
  mendStamps,
  prune,
  reapExpired,
  reapLeases,
  resolveQueues,
  sweepBlocked,
} from "./reap.ts";
export { replay, replayMany } from "./replay.ts";
export { resolve } from "./resolve.ts";
export { backlog, listRounds, recordRound, recordRoundAndLook } from "./rounds.ts";
export {
  deleteSchedule,
  findSchedule,
  listSchedules,
  pauseSchedule,
  putSchedule,
  resumeSchedule,
  runSchedule,
  scheduleOutcomes,
} from "./schedules.ts";
export { requireSchemaVersion } from "./schema-version.ts";
export { completeOne, settle } from "./settle.ts";
export { settleOne } from "./settle-one.ts";
export { findShownJob, listShownJobs } from "./shown-jobs.ts";
export { durations, recentMinutes } from "./shown-pairs.ts";
export { findSignal, sendSignal } from "./signal.ts";
export { snapshot } from "./snapshot.ts";
export { typeNumbers } from "./type-numbers.ts";
export { liveWorkers, registerPuller, removeWorker } from "./workers.ts";
