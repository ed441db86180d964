// claim: takes a batch of due jobs under leases, and says whether there are more. See migrations/functions/claim.sql.
import { type BlockerRows, toBlockers } from "../blocker-row.ts";
import {
  type ClaimedJob,
  type JobError,
  type JobSchedule,
  type Payload,
  type Settlement,
  type StepValues,
  timeOfId,
} from "../job.ts";
import { defaultQueuePolicy, type KeyPolicy } from "../key-policy.ts";
import { packSettlements, type Settled } from "../settlements.ts";
import { type LimitedType, packLimits } from "../type-limits.ts";
import { sql } from "./sql.ts";
import { one, type Statement } from "./statement.ts";

export interface ClaimableType extends LimitedType {
  /** Only if it differs from that of the claim. */
  leaseSeconds?: number;
}

export interface Claim {
  queue: string;
  /** A name alone is a type without limits. */
  types: readonly (ClaimableType | string)[];
  limit: number;
  leaseSeconds: number;
  worker?: string;
  /** The limit for the payloads together. The first job is claimed whatever its size. */
  maxBytes?: number;
  /** False if isolated jobs must not be claimed: a drain that runs other jobs does not take them. Default true. */
  takeIsolated?: boolean;
  /** The most consecutive jobs of one partition key. Default 1. */
  run?: number;
  /** Of jobs with a partition key, only those of these buckets. If left out, all. */
  buckets?: readonly number[] | null;
  /** Of each bucket the number of its owner, so that the claim can prepare jobs for the other workers too. */
  owners?: readonly number[] | null;
  /** What the deployment says about the queue's keys. If left out, what is stored stays. */
  policy?: Partial<KeyPolicy>;
  /** If two deployments have different policies, that of the newer one counts: key-policy.sql. Default: this one counts. */
  isDeployed?: boolean;
  /** Counts the worker as alive, if the queue has partition keys. Default false. */
  registers?: boolean;
  /** The types whose stored steps come along. */
  stepTypes?: readonly string[];
}

const defaultMaxBytes = 4 * 1024 * 1024;

export interface Claimed {
  /** Highest priority first, then oldest first. */
  jobs: ClaimedJob[];
  hasMore: boolean;
  /** Jobs of this queue or of others may wait for these jobs. */
  hasLinks: boolean;
  /** The results of the settlements that were sent with the claim. */
  settled: Settled[];
  /** The live workers of the queue, if it has partition keys and the claim registers. */
  workers: string[] | null;
}

/** The outcomes of earlier jobs can be sent with a claim: they are settled before it, in the same round trip. */
export function claim(
  { queue, limit, leaseSeconds, worker, maxBytes, takeIsolated = true, ...rest }: Claim,
  settlements: readonly Settlement[] = [],
): Statement<Claimed> {
  const types = rest.types.map((type) => (typeof type === "string" ? { type } : type));
  const packed = settlements.length > 0 ? packSettlements(settlements) : null;
  return {
    name: "claim",
    // A second run after a lost answer claims other jobs. The first ones are abandoned when their lease runs out.
    isRepeatable: false,
    build: (schema) => sql`
      select ${schema}.claim(
        ${queue}::text,
        ${types.map(({ type }) => type)}::text[],
        ${limit}::int,
        ${leaseSeconds}::float8,
        ${worker ?? null}::text,
        ${maxBytes ?? defaultMaxBytes}::bigint,
        ${packLimits(types)}::jsonb,
        ${packLeases(types, leaseSeconds)}::jsonb,
        ${packed?.ids ?? null}::uuid[],
        ${packed?.keys ?? null}::uuid[],
        ${packed?.outcomes ?? null}::jsonb,
        ${takeIsolated}::boolean,
        ${rest.run ?? 1}::int,
        ${rest.buckets ?? null}::int[],
        ${packPolicy(rest)}::jsonb,
        ${rest.registers ?? false}::boolean,
        ${rest.stepTypes ?? null}::text[],
        ${rest.owners ?? null}::int[]
      ) as claimed`,
    decode: one(({ claimed }) => {
      const answer = claimed as Answer;
      return {
        jobs: rest.stepTypes
          ? toClaimedJobs(answer).map((job) => withSteps(job, answer, rest.stepTypes ?? []))
          : toClaimedJobs(answer),
        hasMore: answer.has_more,
        hasLinks: answer.has_waits === true || (answer.leases ?? []).some(hasLinked),
        settled: packed?.read(answer.settled ?? []) ?? [],
        workers: answer.workers ?? null,
      };
    }),
  };
}

/** What migrations/functions/claim.sql returns. */
interface Answer {
  settled: Settled["status"][] | null;
  key: string;
  is_probe: boolean;
  is_trial: boolean;
  has_more: boolean;
  /** True if jobs of the queue wait for the ends of others. */
  has_waits?: boolean | null;
  leases: Lease[] | null;
  workers?: string[] | null;
  stored: {
    now_ms: number;
    /** Only jobs with stored steps. Null: they do not fit, and are read by another statement. */
    steps: Record<string, StepValues | null> | null;
  } | null;
}
interface Lease {
  type: string;
  priority: number;
  expires_ms: number;
  /** Null if it is the first attempt of each job. */
  attempts: number[] | null;
  /** Null if no job was abandoned before. */
  abandonments: number[] | null;
  seqs: number[];
  /** What the jobs of this lane have: no key, a partition key or a fair key. */
  kind: "plain" | "ordered" | "fair";
  /** The keys of the turns that the jobs hold. Null if they hold none. */
  keys: string[] | null;
  jobs: JobRow[];
  /** By the jobs' ids, and then by slot. Null if none of them is linked. */
  blockers?: Record<string, BlockerRows | { too_large: true }> | null;
  /** By the jobs' ids. Null if schedules have made none of them. */
  schedules?: Record<string, JobSchedule> | null;
}
type JobRow = [
  id: string,
  payload: Payload,
  maxAttempts: number,
  partitionKey: string | null,
  traceparent: string | null,
  tags: string[] | null,
  errors: JobError[] | null,
  fairKey: string | null,
];

/** Jobs of one partition key are of one lease, so they stay in the order of their key. */
function toClaimedJobs(answer: Answer): ClaimedJob[] {
  const jobsWithSeq = (answer.leases ?? []).flatMap((lease) => {
    const leaseExpiresAt = new Date(lease.expires_ms);
    return lease.jobs.map((row, index) => ({
      seq: lease.seqs[index] ?? 0,
      job: toClaimedJob(answer, { lease, leaseExpiresAt, row, index }),
    }));
  });
  jobsWithSeq.sort((a, b) => b.job.priority - a.job.priority || a.seq - b.seq);
  return jobsWithSeq.map(({ job }) => job);
}

function toClaimedJob(
  { key, is_probe: isProbe, is_trial: isTrial, has_waits }: Answer,
  { lease, leaseExpiresAt, row, index }: { lease: Lease; leaseExpiresAt: Date; row: JobRow; index: number },
): ClaimedJob {
  const [id, payload, maxAttempts, partitionKey, traceparent, tags, errors, fairKey] = row;
  return {
    id,
    leaseKey: key,
    type: lease.type,
    payload,
    attempt: lease.attempts?.[index] ?? 1,
    maxAttempts,
    abandonments: lease.abandonments?.[index] ?? 0,
    leaseExpiresAt,
    priority: lease.priority,
    createdAt: timeOfId(id),
    partitionKey,
    fairKey,
    runKey: lease.kind === "ordered" ? (lease.keys?.[index] ?? null) : null,
    mayRelease: lease.keys !== null || has_waits === true,
    isLinked: has_waits === true || hasLinked(lease),
    traceparent,
    tags: tags ?? [],
    errors: errors ?? [],
    blockers: decodeBlockers(lease.blockers?.[id]),
    schedule: lease.schedules?.[id] ?? null,
    isProbe,
    isTrial,
    stored: null,
  };
}

const hasLinked = ({ blockers }: Lease) => blockers != null;

function decodeBlockers(blockers: BlockerRows | { too_large: true } = {}): ClaimedJob["blockers"] {
  return blockers.too_large === true ? null : toBlockers(blockers as BlockerRows);
}

function withSteps(job: ClaimedJob, { stored }: Answer, types: readonly string[]): ClaimedJob {
  const steps = stored?.steps?.[job.id];
  const isRead = stored && steps !== null && types.includes(job.type);
  return isRead ? { ...job, stored: { steps: steps ?? {}, nowMs: stored.now_ms } } : job;
}

function packLeases(types: readonly ClaimableType[], claimSeconds: number): string | null {
  const others = types.filter(
    (type) => type.leaseSeconds !== undefined && type.leaseSeconds !== claimSeconds,
  );
  return others.length > 0
    ? JSON.stringify(Object.fromEntries(others.map((type) => [type.type, type.leaseSeconds])))
    : null;
}

function packPolicy({ policy, isDeployed }: Pick<Claim, "policy" | "isDeployed">): string | null {
  if (!policy) return null;
  const { onDead, concurrency, secondsApart } = { ...defaultQueuePolicy, ...policy };
  const fields = { on_dead: onDead, concurrency, seconds_apart: secondsApart };
  return JSON.stringify(isDeployed ? { ...fields, is_deployed: true } : fields);
}
