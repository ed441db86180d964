// The runs of a claimed batch. A run is the jobs of one partition key that a claim took together. They run one after
// another, in order. If one of them does not complete, the rest is not started: the settle of that one sends the rest back
// to the queue. A job without a partition key is a run of its own.
import type { ClaimedJob } from "../../core/job.ts";
import type { EndedAttempt } from "../settle.ts";

export interface JobRun {
  readonly first: ClaimedJob;
  readonly rest: readonly ClaimedJob[];
}

/** A job whose attempt has ended and is not settled yet. */
export interface EndedJob extends EndedAttempt {
  job: ClaimedJob;
  /** The jobs of its run that were not started and go back with it. */
  rest: readonly ClaimedJob[];
  /** How long its handler ran. Undefined if it was not started. */
  ms?: number;
}

/** The jobs of a run are of one type, and come in order. */
export function runsOf(jobs: readonly ClaimedJob[]): JobRun[] {
  return [...Map.groupBy(jobs, (job) => job.runKey ?? job.id).values()].flatMap(toRun);
}

/** None if there are no jobs. */
export function toRun([first, ...rest]: readonly ClaimedJob[]): JobRun[] {
  return first ? [{ first, rest }] : [];
}

export function releaseRun({ first, rest }: JobRun): EndedJob {
  return { job: first, outcome: { kind: "release" }, rest };
}

/** How many ends there will be after which others may start. All jobs of one run count as one. */
export function countReleases(jobs: readonly ClaimedJob[]): number {
  return new Set(jobs.filter((job) => job.mayRelease).map((job) => job.runKey ?? job.id)).size;
}

/** Its end has made a job: the next one of its chain, or children that it waits for. */
export function hasMadeJobs({ outcome }: EndedJob): boolean {
  return (outcome.kind === "complete" && outcome.next !== undefined) || outcome.kind === "suspend";
}
