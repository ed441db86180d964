// What a handler can do with durable steps. A step's value is stored when it has ended, and the step never runs again: a retry
// of the job, or its next invocation, gets the stored value.
import type { Fault } from "../../core/errors.ts";
import type { Json } from "../../core/job.ts";
import type { Blocker, PayloadOf, TypedJob } from "../../core/typed-job.ts";

/** A value after it was stored as JSON. What cannot be stored, for instance undefined, becomes null. */
export type Stored<Value> = Value extends Json
  ? Value
  : Value extends undefined
    ? null
    : Value extends { toJSON(): infer Result }
      ? Stored<Result>
      : Value extends (...values: never[]) => unknown
        ? never
        : Value extends object
          ? { [Key in keyof Value]: Stored<Value[Key]> }
          : unknown extends Value
            ? unknown
            : null;

export interface StepOptions<Value> {
  /** A step that takes longer fails. At most the type's `timeoutSeconds`, which is the default. */
  timeoutSeconds?: number;
  /** Checks the stored value, also one that an older release has stored. A value that does not fit makes the job dead. */
  schema?: { parse(value: unknown): Value };
}

export interface WaitOptions {
  /** If left out, the job waits until it expires. */
  timeoutSeconds?: number;
}

/** A signal and the shape of its payload: what defineSignal makes. */
export interface Signal<Payload = unknown> {
  readonly name: string;
  readonly payload: { parse(value: unknown): Payload };
}

/** A job type as `step.all` needs it: what defineJob makes. */
export interface ChildType extends TypedJob {
  readonly queue: string;
  readonly maxAttempts: number;
  faultsOf(payload: unknown): readonly Fault[];
}

/** How a child ended. */
export type ChildOutcome<Child = unknown> = Blocker<Child>;

export interface Step {
  /**
   * Runs the function, unless a value of this name is stored already. Names are unique within a job: the second call with
   * the same name is `name#2`, and so on. An error is not stored: it is thrown, and the step runs again in the next attempt.
   */
  run<Value>(
    name: string,
    run: (context: { signal: AbortSignal }) => Value | Promise<Value>,
    options?: StepOptions<Stored<Value>>,
  ): Promise<Stored<Value>>;
  /** Sleeps by the database's clock. The job is suspended meanwhile, unless it is only a few seconds. */
  sleep(name: string, seconds: number): Promise<void>;
  /** Waits for the first signal of this name and key, sent before or after. Null if the time is over first. */
  waitFor<Payload>(signal: Signal<Payload>, key: string, options?: WaitOptions): Promise<Payload | null>;
  /** Enqueues a job for each payload, once, and waits until all have ended. Answers in the order of the payloads. */
  all<Child extends ChildType>(
    name: string,
    child: Child,
    payloads: readonly PayloadOf<Child>[],
  ): Promise<ChildOutcome<Child>[]>;
}
