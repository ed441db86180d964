// Why a pending job does not run: the reason, as migrations/functions/waiting-for.sql finds it, and a sentence for people.

export const waitingKinds = ["time", "turn", "key", "jobs", "signal", "pause", "limit", "breaker"] as const;

/** Times are ISO 8601. */
export type WaitingReason =
  | {
      kind: "time";
      at: string /** Above 0: this attempt failed, and the job waits for its retry. */;
      attempt: number;
    }
  | { kind: "key"; holder: KeyHolder; jobIds: string[]; at?: string; attempt?: number }
  | { kind: "jobs"; count: number; jobIds: string[]; at?: string }
  | { kind: "signal"; name: string; key: string; at?: string }
  | { kind: "pause"; paused: "queue" | "type"; since: string }
  | { kind: "breaker"; state: "open" | "closing"; since: string }
  | { kind: "limit"; limited: "concurrency"; max: number }
  | { kind: "limit"; limited: "rate"; max: number; seconds: number }
  | { kind: "limit"; limited: "share_concurrency"; max: number; fairKey: string }
  | { kind: "limit"; limited: "share_rate"; at: string; fairKey: string }
  | { kind: "turn"; isIsolated: boolean };

/** Where the job is that has the turn of the key. `waiting`: nobody has it at the moment, and this job gets it first. */
type KeyHolder = "dead" | "scheduled" | "leased" | "ready" | "waiting" | "blocked";

type ReasonOf<Kind extends WaitingReason["kind"]> = Extract<WaitingReason, { kind: Kind }>;

export interface WaitingJob {
  type: string;
  queue: string;
  partitionKey: string | null;
  /** Who runs jobs of its type. Null if this deployment does not have the type. */
  takenBy: "drain" | "puller" | null;
}

export interface WaitingFor {
  kind: (typeof waitingKinds)[number];
  detail: string;
  jobIds: string[];
}

export function describeWaiting(job: WaitingJob, reason: WaitingReason): WaitingFor {
  const jobIds = reason.kind === "key" || reason.kind === "jobs" ? reason.jobIds : [];
  return { kind: reason.kind, detail: toSentence(job, reason), jobIds };
}

function toSentence(job: WaitingJob, reason: WaitingReason): string {
  switch (reason.kind) {
    case "time":
      return reason.attempt > 0
        ? `It waits for its retry at ${clock(reason.at)}, after attempt ${reason.attempt} failed.`
        : `It is not due before ${clock(reason.at)}.`;
    case "key":
      return describeKey(`the partition key "${job.partitionKey}"`, reason);
    case "jobs":
      return `It waits for the end of ${reason.count === 1 ? `job ${reason.jobIds[0]}` : jobs(reason.count)}${until(reason)}.`;
    case "signal":
      return `It waits for the signal "${reason.name}" with the key "${reason.key}"${until(reason)}.`;
    case "pause":
      return `The ${reason.paused} "${job[reason.paused]}" has been paused since ${clock(reason.since)}.`;
    case "breaker":
      return reason.state === "open"
        ? `The circuit breaker of the type "${job.type}" has been open since ${clock(reason.since)}. One job a minute runs as a probe.`
        : `The circuit breaker of the type "${job.type}" closed at ${clock(reason.since)}. It lets jobs through in growing steps.`;
    case "limit":
      return describeLimit(job, reason);
    case "turn":
      return describeTurn(job, reason);
    default:
      return reason satisfies never;
  }
}

function describeKey(key: string, { holder, jobIds, at = "", attempt = 0 }: ReasonOf<"key">): string {
  const earlier = `It waits for job ${jobIds[0]} of ${key}`;
  switch (holder) {
    case "dead":
      return `Job ${jobIds[0]} of ${key} has been dead since ${clock(at)}. It blocks the key until it is replayed or discarded.`;
    case "scheduled":
      return `${earlier}, which ${attempt > 0 ? "waits for its retry at" : "is due at"} ${clock(at)}.`;
    case "leased":
      return jobIds.length > 1
        ? `It waits for ${jobIds.length} jobs of ${key}, which run one after another.`
        : `${earlier}, which is running.`;
    case "ready":
      return `${earlier}, which is next.`;
    case "waiting":
      return `${earlier}, which comes before it.`;
    case "blocked":
      return `${earlier}, which waits for others.`;
    default:
      return holder satisfies never;
  }
}

function describeLimit(job: WaitingJob, reason: ReasonOf<"limit">): string {
  switch (reason.limited) {
    case "concurrency":
      return `The type "${job.type}" runs at most ${jobs(reason.max)} at one time, and as many are running.`;
    case "rate":
      return `The type "${job.type}" starts at most ${jobs(reason.max)} in ${reason.seconds} s, and as many have started.`;
    case "share_concurrency":
      return `The fair key "${reason.fairKey}" runs at most ${jobs(reason.max)} at one time, and as many are running.`;
    case "share_rate":
      return `The fair key "${reason.fairKey}" has a rate. Its next job starts at ${clock(reason.at)} or later.`;
    default:
      return reason satisfies never;
  }
}

function describeTurn({ type, takenBy }: WaitingJob, { isIsolated }: ReasonOf<"turn">): string {
  if (!takenBy)
    return `Nothing holds it, but this deployment has no job type "${type}", so no drain takes it.`;
  const taken = `A ${takenBy} takes it when its turn comes.`;
  return isIsolated
    ? `Its lease ran out before, so it runs apart from other jobs. ${taken}`
    : `Nothing holds it. ${taken}`;
}

function until({ at }: { at?: string }): string {
  return at === undefined ? "" : `, until ${clock(at)} at the latest`;
}

function clock(at: string): string {
  return `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

function jobs(count: number): string {
  return `${count} ${count === 1 ? "job" : "jobs"}`;
}
