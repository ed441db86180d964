// The options of a puller, their defaults, and what a handler gets.
import type { CamelCased } from "../client/field-names.ts";
import type { Fetch } from "../client/send.ts";
import type { ClaimResponse } from "../contract/work.ts";
import type { Json } from "../core/job.ts";
import type { Next } from "../core/next.ts";
import type { OutputOf, PayloadOf, TypedJob } from "../core/typed-job.ts";
import type { Step } from "../queue/steps/step.ts";

/** A job in the answer to a claim. */
export type ClaimedJob = ClaimResponse["jobs"][number];

/** A claimed job as its handler sees it. Times are ISO 8601. */
export interface PulledJob extends CamelCased<Omit<ClaimedJob, "payload" | "lease_expires_at">> {
  /**
   * Aborted when the lease is lost, when `timeoutSeconds` have passed, when somebody cancelled the job, or when the puller
   * has no more time to stop.
   */
  readonly signal: AbortSignal;
  /** Durable steps. A wait, and a sleep of more than a few seconds, gives the job back until it is over. */
  readonly step: Step;
}

/** Its return value is the job's output. A handler may declare a narrower type for its payload. */
export type Handler<Payload = ClaimedJob["payload"], Output = unknown> = {
  run(payload: Payload, job: PulledJob): ResultFor<Output>;
}["run"];

/** If the type does not say what its output is, a handler may return anything. Where null is an output, nothing is one too. */
type ResultFor<Output> = Json extends Output
  ? unknown
  : Returned<Output> | Next<Output> | Promise<Returned<Output> | Next<Output>>;
// biome-ignore lint/suspicious/noConfusingVoidType: that is what an async function without a return gives.
type Returned<Output> = null extends Output ? Output | undefined | void : Output;

export type Handlers<Jobs> = string extends keyof Jobs
  ? Record<string, Handler>
  : { [Type in keyof Jobs]: Handler<PayloadOf<Jobs[Type]>, OutputOf<Jobs[Type]>> };

export interface PullerOptions<Jobs extends Record<string, TypedJob> = Record<string, TypedJob>> {
  /** The Worker's URL: `https://sluice.example.com`. */
  url: string;
  /** A key with the role worker. */
  key: string;
  /** The queue to claim from. Default "default". */
  queue?: string;
  /** Several queues instead of one. They share the `concurrency`, which must not be lower than their number. */
  queues?: readonly string[];
  /** A handler for each type. Jobs of other types are not claimed. */
  handlers: Handlers<Jobs>;
  /** How many handlers run at one time. Default 10. */
  concurrency?: number;
  /** How many consecutive jobs of one partition key are claimed together, to run one after another. Default 10. */
  maxRun?: number;
  /** How long a lease is, 60 to 3600. The puller extends it while a handler runs. Default 90. */
  leaseSeconds?: number;
  /** How long a claim waits for a first job, 0 to 20. An idle puller needs up to this long to stop. Default 5. */
  waitSeconds?: number;
  /** How long a handler may run. Default: as long as it likes. */
  timeoutSeconds?: number;
  /** How long running handlers have to finish after `stop()` or a signal. Then their jobs are released. Default 25. */
  stopSeconds?: number;
  /** If false, SIGTERM and SIGINT do not stop the puller. Default true. */
  handleSignals?: boolean;
  /** Default: "puller-" and 8 random hex digits. */
  workerId?: string;
  /** Another `fetch`. */
  fetch?: Fetch;
  /** Called for each failed attempt, lost lease and failed request. Default: writes one line with console.error. */
  onError?(error: Error, job?: JobName): void;
  /** Called for each event: `started`, `claimed`, `settled`, `stopping`, `stopped` and others. */
  log?(event: string, fields: Record<string, unknown>): void;
}

/** The job that an error is about. */
export type JobName = Pick<PulledJob, "jobId" | "type" | "queue" | "attempt">;

export interface Settings
  extends Required<Omit<PullerOptions, "queue" | "handlers" | "timeoutSeconds" | "fetch">> {
  fetch?: Fetch;
  handlers: ReadonlyMap<string, Handler>;
  timeoutSeconds: number | undefined;
}

export function withDefaults<Jobs extends Record<string, TypedJob>>(options: PullerOptions<Jobs>): Settings {
  const { queue, queues = [queue ?? "default"], handlers, concurrency = 10, ...rest } = options;
  const settings = {
    ...rest,
    queues,
    handlers: new Map<string, Handler>(Object.entries(handlers)),
    concurrency,
    maxRun: options.maxRun ?? 10,
    leaseSeconds: options.leaseSeconds ?? 90,
    waitSeconds: options.waitSeconds ?? 5,
    timeoutSeconds: options.timeoutSeconds,
    stopSeconds: options.stopSeconds ?? 25,
    handleSignals: options.handleSignals ?? true,
    workerId: options.workerId ?? `puller-${randomHex(4)}`,
    onError: options.onError ?? printError,
    log: options.log ?? (() => {}),
  };
  refuseBadSettings(settings);
  return settings;
}

/** The server checks the rest. */
function refuseBadSettings({ queues, handlers, concurrency }: Settings): void {
  if (handlers.size === 0) throw new TypeError("handlers: must have at least one type");
  if (queues.length === 0) throw new TypeError("queues: must have at least one queue");
  if (!Number.isInteger(concurrency) || concurrency < queues.length || concurrency > 1000)
    throw new TypeError(`concurrency: must be a whole number from ${queues.length} (queues) to 1000`);
}

function randomHex(bytes: number): string {
  return [...crypto.getRandomValues(new Uint8Array(bytes))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

function printError(error: Error, job?: JobName): void {
  const about = job ? `${job.type} ${job.jobId}, attempt ${job.attempt}: ` : "";
  console.error(`sluice puller: ${about}${error.message}`);
}
