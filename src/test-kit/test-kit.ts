// sluice/test: run one job and get its outcome, or drain a queue of a real database with a clock that is moved by hand. For
// tests in Node, with any test runner.
export { type JobOutcome, type RunJobOptions, runJob } from "./run-job.ts";
export { createTestQueue, type DrainResult, type TestQueue, type TestQueueOptions } from "./test-queue.ts";
