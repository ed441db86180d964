// The jobs of one drain that have ended and are not settled yet. They are settled in batches bounded by rows and bytes. A
// settle is safe to repeat: what did not get through waits for the next turn. A batch that the database refuses is settled
// by halves, so that one bad outcome does not hold up the others.
import { SluiceError } from "../../core/errors.ts";
import type { ClaimedJob } from "../../core/job.ts";
import type { Settled } from "../../core/settlements.ts";
import type { Ports } from "../ports.ts";
import { type JudgedTypes, settleAttempts } from "../settle.ts";
import { type EndedJob, releaseRun, toRun } from "./job-runs.ts";
import { countSettled, type SettledCounts } from "./settle-report.ts";
import { storableText, textOf } from "./storable.ts";

const outcomesPerSettle = 1000;
/** Outputs can be large. */
const outcomeBytesPerSettle = 512 * 1024;
/** After this many failures the drain gives up. The leases run out, and a reap round makes the jobs pending again. */
const maxFailuresInARow = 8;
const firstPauseMs = 25;
/** If this many jobs in a row are refused even as failed attempts, the outcomes are not the reason. */
const maxRefusalsInARow = 3;

export interface UnsettledJobs {
  readonly ports: Ports;
  readonly queue: string;
  /** The end of the invocation: nothing is tried again after it. */
  readonly endMs: number;
  readonly counts: SettledCounts;
  readonly unsure: EndedJob[];
  readonly judgedAtMs: JudgedTypes;
  /** Runs with a job that could not be settled. It will run again, so nothing behind it may be settled. */
  readonly brokenRuns: Set<string>;
  jobs: EndedJob[];
  failuresInARow: number;
  refusalsInARow: number;
}

export function createUnsettledJobs(
  ports: Ports,
  { queue, endMs }: { queue: string; endMs: number },
): UnsettledJobs {
  const counts = { completed: 0, failed: 0, released: 0, lost: 0 };
  return {
    ports,
    queue,
    endMs,
    counts,
    unsure: [],
    judgedAtMs: new Map(),
    brokenRuns: new Set(),
    jobs: [],
    failuresInARow: 0,
    refusalsInARow: 0,
  };
}

export function addEnded(unsettled: UnsettledJobs, ended: readonly EndedJob[]): void {
  const lost = ended.filter(({ job }) => isInBrokenRun(unsettled, job));
  if (lost.length > 0) countSettled(unsettled.ports, unsettled, { jobs: lost, settled: [] });
  unsettled.jobs.push(...ended.filter((one) => !lost.includes(one)));
}

export function isInBrokenRun({ brokenRuns }: UnsettledJobs, job: ClaimedJob): boolean {
  return job.runKey !== null && brokenRuns.has(idOfRun(job));
}

/** A later claim of the same key has another lease. */
function idOfRun({ leaseKey, runKey }: ClaimedJob): string {
  return `${leaseKey} ${runKey}`;
}

/**
 * What the next claim can settle on its way: all jobs, if they completed and fit in one batch. Otherwise none, because a
 * breaker is judged between a failure, or a probe, and the next claim.
 */
export function jobsToSettleWithClaim({ jobs }: UnsettledJobs): readonly EndedJob[] {
  const haveCompleted = jobs.every(({ job, outcome }) => outcome.kind === "complete" && !job.isProbe);
  return haveCompleted && firstBatch(jobs).length === jobs.length ? jobs : [];
}

/** `batch` is the first of the jobs. */
export function markSettled(
  unsettled: UnsettledJobs,
  batch: readonly EndedJob[],
  settled: readonly Settled[],
): void {
  const refused = new Set(batch.filter((ended, index) => wasRefused(ended, settled[index])));
  const counted = batch.map((ended) => (refused.has(ended) ? { ...ended, rest: [] } : ended));
  countSettled(unsettled.ports, unsettled, { jobs: counted, settled });
  for (const { job } of batch.slice(settled.length)) unsettled.brokenRuns.add(idOfRun(job));
  const rests = [...refused].flatMap(({ rest }) => toRun(rest)).map(releaseRun);
  unsettled.jobs = [...unsettled.jobs.slice(batch.length), ...rests];
}

/**
 * The lease no longer holds this job. It still holds the rest of the run if the handler completed its job in a transaction
 * of its own and then failed, so the rest is released. If a release is refused, the lease has lost the rest too.
 */
function wasRefused({ outcome }: EndedJob, answer: Settled | undefined): boolean {
  return answer?.applied === false && outcome.kind !== "release";
}

/** Answers false if a settle failed. The remaining jobs are settled in a later turn. */
export async function settleAll(unsettled: UnsettledJobs): Promise<boolean> {
  while (unsettled.jobs.length > 0) {
    if (!(await settleBatch(unsettled, firstBatch(unsettled.jobs)))) return false;
  }
  return true;
}

async function settleBatch(unsettled: UnsettledJobs, batch: readonly EndedJob[]): Promise<boolean> {
  const error = await trySettle(unsettled, batch);
  if (!error) return true;
  if (!isRefusal(error)) return pauseOrGiveUp(unsettled, batch, error);
  const [only] = batch;
  if (only && batch.length === 1) return settleRefused(unsettled, only, error);
  const half = Math.ceil(batch.length / 2);
  return (await settleBatch(unsettled, batch.slice(0, half))) && settleBatch(unsettled, batch.slice(half));
}

/** The outcome of this job is refused, so its attempt has failed. If that is refused too, its lease runs out. */
async function settleRefused(unsettled: UnsettledJobs, ended: EndedJob, refusal: Error): Promise<boolean> {
  const { ports, queue } = unsettled;
  const message = storableText(`its outcome was refused: ${textOf(refusal)}`, 1000);
  const error = await trySettle(unsettled, [{ ...ended, outcome: { kind: "retry", message } }]);
  if (!error) return true;
  if (!isRefusal(error) || ++unsettled.refusalsInARow >= maxRefusalsInARow)
    return pauseOrGiveUp(unsettled, [ended], error);
  ports.log.error("outcome refused", { queue, job_id: ended.job.id, message: textOf(error) });
  markSettled(unsettled, [ended], []);
  return true;
}

/** Answers with the error if the settle failed. */
async function trySettle(unsettled: UnsettledJobs, batch: readonly EndedJob[]): Promise<Error | undefined> {
  try {
    const settled = await settleAttempts(unsettled.ports, batch, unsettled.judgedAtMs);
    unsettled.failuresInARow = 0;
    unsettled.refusalsInARow = 0;
    markSettled(unsettled, batch, settled);
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

async function pauseOrGiveUp(
  unsettled: UnsettledJobs,
  batch: readonly EndedJob[],
  error: Error,
): Promise<false> {
  const { ports, queue, endMs } = unsettled;
  unsettled.failuresInARow++;
  ports.log.error("settle failed", { queue, jobs: batch.length, message: textOf(error) });
  if (unsettled.failuresInARow >= maxFailuresInARow || ports.clock.nowMs() >= endMs)
    markSettled(unsettled, unsettled.jobs, []);
  else await ports.clock.sleep(firstPauseMs * 2 ** unsettled.failuresInARow);
  return false;
}

/** The database refused what the statement says, so it would refuse it again. Any other error may pass. */
export function isRefusal(error: unknown): boolean {
  return !(error instanceof SluiceError && /^(database|schema)_/.test(error.code));
}

function firstBatch(jobs: readonly EndedJob[]): readonly EndedJob[] {
  let bytes = 0;
  const size = jobs.findIndex(({ outcome }, index) => {
    bytes +=
      outcome.kind === "complete" && outcome.output !== null ? JSON.stringify(outcome.output).length : 0;
    return index > 0 && (bytes > outcomeBytesPerSettle || index >= outcomesPerSettle);
  });
  return size === -1 ? jobs : jobs.slice(0, size);
}
