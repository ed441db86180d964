// What a handler gets for flows: the jobs that its own waited for, and the ways to continue with another.
import { FatalError, type Fault, SluiceError } from "../core/errors.ts";
import type { NewJob, Payload } from "../core/job.ts";
import { type JobOptions, storedPayload } from "../core/job-options.ts";
import { Next } from "../core/next.ts";
import type {
  Blocker,
  Blockers,
  OptionsFor,
  OutputOf,
  Outputs,
  PayloadOf,
  Slots,
  TypedJob,
} from "../core/typed-job.ts";

/** The settle itself is done once, so a job that comes next needs no idempotency key. */
export type NextOptions = Omit<
  JobOptions,
  "idempotencyKey" | "after" | "onBlockerDead" | "debounce" | "throttle"
>;

/** What `next` needs from a definition. */
export interface EnqueuableJob extends TypedJob {
  readonly queue: string;
  readonly maxAttempts: number;
  faultsOf(payload: unknown): Fault[];
}

export interface FlowContext<After, Input> {
  /** The jobs that this one waited for, by slot, however they ended. */
  readonly blockers: Blockers<After>;
  /** The outputs of these jobs. Reading it is a fatal error if one of them did not complete. */
  readonly outputs: Outputs<After>;
  /** To be returned by the handler: its job completes, and this one comes next in the chain. */
  next<Job extends EnqueuableJob>(
    job: Job,
    payload: PayloadOf<Job>,
    ...options: OptionsFor<Job, NextOptions>
  ): Next<OutputOf<Job>>;
  /** The same, with another job of the handler's own type. */
  again(payload: Input, options?: NextOptions): Next<never>;
}

type ClaimedBlockers = Readonly<Record<string, readonly Blocker[]>>;

export function flowContext(
  own: EnqueuableJob,
  after: Slots,
  claimed: ClaimedBlockers,
): FlowContext<Record<string, never>, object> {
  const inSlots = <T>(read: (blocker: Blocker) => T) =>
    Object.fromEntries(
      Object.entries(after).map(([slot, job]) => {
        const values = (claimed[slot] ?? []).map(read);
        return [slot, Array.isArray(job) ? values : values[0]];
      }),
    );
  const next = (job: EnqueuableJob, payload: object, options: NextOptions = {}) =>
    new Next<never>(newJob(job, payload, options));
  return {
    get blockers() {
      return inSlots((blocker) => blocker) as never;
    },
    get outputs() {
      return inSlots(outputOf) as never;
    },
    next: next as never,
    again: (payload, options) => next(own, payload, options),
  };
}

function outputOf(blocker: Blocker): unknown {
  if (blocker.status === "completed") return blocker.output;
  throw new FatalError(`the job ${blocker.jobId} that this one waited for is ${blocker.status}`);
}

/** Stores the payload unchanged. The handler's side parses it, maybe with a newer schema. */
export function newJob(
  job: EnqueuableJob,
  payload: unknown,
  options: JobOptions,
  path: readonly string[] = [],
): NewJob {
  const stored = checkPayload(job, storedPayload(payload, options), path);
  return {
    type: job.type,
    payload: options.debounce?.mode === "merge" ? (payload as Payload) : stored,
    ...withDefaults(job, options),
  };
}

export function withDefaults<Options extends JobOptions>(job: EnqueuableJob, options: Options): Options {
  return { queue: job.queue, maxAttempts: job.maxAttempts, ...options };
}

export function checkPayload(job: EnqueuableJob, payload: unknown, path: readonly string[]): Payload {
  const faults = job.faultsOf(payload).map((fault) => ({
    ...fault,
    path: ["payload", ...path, fault.path].filter(Boolean).join("."),
  }));
  if (faults.length === 0) return payload as Payload;
  throw new SluiceError("request_invalid", `invalid payload for the type "${job.type}"`, { faults });
}
