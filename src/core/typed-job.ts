// The types that a job's definition gives to producers: its payload, its output, and the jobs that it waits for. They are
// structural, so a producer needs only the definition's type. The payload's schema is described by Standard Schema.

export interface TypedJob {
  readonly type: string;
  readonly payload: { readonly "~standard": { readonly types?: { readonly input: unknown } | undefined } };
  /** Never set: it carries the type of the output. */
  readonly output?: unknown;
  readonly after?: Slots;
}

/** What a job waits for, by name: one job of a type, or any number of them. */
export type Slots = { readonly [slot: string]: SlotJob | readonly [SlotJob] };

interface SlotJob {
  readonly type: string;
  readonly output?: unknown;
}

/** A type that waits for nothing. */
export type NoSlots = Record<never, never>;

export type PayloadOf<Job> = Job extends {
  payload: { "~standard": { types?: { input: infer Input extends object } | undefined } };
}
  ? Input
  : never;

/** What a call with the mode `merge` gives: a part of a payload that is a list. */
export type ItemOf<Payload> = Payload extends { items: readonly (infer Item)[] } ? Item : never;

/** The output of a job; of one that continues, the output at the end of its chain. */
export type OutputOf<Job> = Job extends { readonly output?: infer Output }
  ? Exclude<Output, undefined>
  : unknown;

export type SlotsOf<Job> = Job extends { readonly after: infer After extends Slots } ? After : NoSlots;

declare const jobType: unique symbol;

/** A job's id. It knows the type of its job, so that another type's id does not fit where it is expected. */
export type JobId<Job = unknown> = string & { readonly [jobType]?: Job };

/** The job that an id knows of. Any text can be an id: then nothing is known. */
export type JobOfId<Id> = Id extends { readonly [jobType]?: infer Job } ? Job : unknown;

/** A job of the flow that is being described. */
export interface FlowRef<Job = unknown> {
  readonly ref: string;
  readonly [jobType]?: Job;
}

/** The jobs for each slot. */
export type JobsFor<After, In extends "flow" | "ids"> = {
  readonly [Slot in keyof After]: After[Slot] extends readonly [infer Job]
    ? readonly Waitable<Job, In>[]
    : Waitable<After[Slot], In>;
};
type Waitable<Job, In> = In extends "flow" ? JobId<Job> | FlowRef<Job> : JobId<Job>;

/** The last argument of an enqueue: `after` is required if the type has slots. */
export type OptionsFor<Job, Options, In extends "flow" | "ids" = "ids"> = keyof SlotsOf<Job> extends never
  ? [options?: Options]
  : [options: Omit<Options, "after"> & { after: JobsFor<SlotsOf<Job>, In> }];

/** A job that was waited for. */
export type Blocker<Job = unknown> =
  | { readonly jobId: JobId<Job>; readonly status: "completed"; readonly output: OutputOf<Job> }
  | {
      readonly jobId: JobId<Job>;
      readonly status: "dead" | "cancelled" | "discarded";
      readonly output: null;
    };

/** What a handler gets to know of the jobs that its own waited for. */
export type Blockers<After> = {
  readonly [Slot in keyof After]: After[Slot] extends readonly [infer Job]
    ? readonly Blocker<Job>[]
    : Blocker<After[Slot]>;
};

export type Outputs<After> = {
  readonly [Slot in keyof After]: After[Slot] extends readonly [infer Job]
    ? readonly OutputOf<Job>[]
    : OutputOf<After[Slot]>;
};

/** The ids of the refs that the description of a flow has returned, in the same shape. */
export type FlowIds<Refs> =
  Refs extends FlowRef<infer Job>
    ? JobId<Job>
    : Refs extends object
      ? { readonly [Name in keyof Refs]: FlowIds<Refs[Name]> }
      : Refs;
