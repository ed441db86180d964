// Every statement that Sluice runs, by name.
export { auditTestNotice, changeAlarms, readAlarms, silenceAlarmAs } from "./alarms.ts";
export { listAudit } from "./audit.ts";
export { books, depths } from "./books.ts";
export { closeBreakerByProbe, openBreaker, recentAttempts } from "./breaker.ts";
export { claim } from "./claim.ts";
export { cancel, discard, replay } from "./close.ts";
export { countDeadLetters, discardAs, replayAs, replayManyAs } from "./dead-letters.ts";
export { claimDeliveries, pruneDeliveries, settleDeliveries } from "./deliver.ts";
export { enqueue } from "./enqueue.ts";
export { recordEnqueueErrors } from "./enqueue-errors.ts";
export { extend } from "./extend.ts";
export { findJob, listDeadLetters, listJobs } from "./find-job.ts";
export { findStates } from "./find-states.ts";
export { addKey, findKey, listKeys, revokeKey } from "./keys.ts";
export { knowsQueue, pause, pauseAs, resume, resumeAs } from "./pause.ts";
export { ping } from "./ping.ts";
export { listBreakers, listPauses } from "./place.ts";
export {
  addPartitions,
  advanceCursors,
  checkReach,
  dropOldestDay,
  foldLedger,
  inspect,
  mendStamps,
  prune,
  reapExpired,
  reapLeases,
} from "./reap.ts";
export { backlog, recordRound } from "./round.ts";
export { requireSchemaVersion } from "./schema-version.ts";
export { settle } from "./settle.ts";
export { durations, recentMinutes } from "./shown-pairs.ts";
export { snapshot } from "./snapshot.ts";
export { completeOne, enqueueMany, enqueueOne } from "./transaction.ts";
