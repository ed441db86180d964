// Every statement that Sluice runs, by name.
export { books } from "./books.ts";
export { closeBreaker, openBreaker, recentAttempts } from "./breaker.ts";
export { claim } from "./claim.ts";
export { cancel, discard, replay } from "./close.ts";
export { enqueue } from "./enqueue.ts";
export { extend } from "./extend.ts";
export { findJob, listJobs } from "./find-job.ts";
export { pause, resume } from "./pause.ts";
export { ping } from "./ping.ts";
export {
  addPartitions,
  advanceCursors,
  dropOldestDay,
  foldLedger,
  foldTally,
  prune,
  reapExpired,
  reapLeases,
} from "./reap.ts";
export { backlog, recordRound } from "./round.ts";
export { settle } from "./settle.ts";
export { snapshot } from "./snapshot.ts";
export { completeOne, enqueueMany, enqueueOne } from "./transaction.ts";
