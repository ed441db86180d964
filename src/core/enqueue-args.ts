// How an enqueue is called and what it tells, in the client and in sluice/sql: with a payload, or in the mode `merge` with an item of
// the list that the type's payload is.
import type { EnqueueOutcome, MergeDebounce, PlainDebounce } from "./job-options.ts";
import type { ItemOf, JobId, OptionsFor, PayloadOf } from "./typed-job.ts";

/** The modes that take a whole payload. */
export interface PlainOption {
  debounce?: PlainDebounce | null | undefined;
}

/** With these options the payload is one item of the type's payload, `{ items: [ … ] }`. */
export interface MergeOption {
  debounce: MergeDebounce;
}

export type EnqueueArgs<Job, Options, Payload = PayloadOf<Job>, Item = ItemOf<Payload>> =
  | [payload: Payload, ...options: OptionsFor<Job, Options & PlainOption>]
  | ([Item] extends [never] ? never : [item: Item, options: Options & MergeOption]);

/** The options of many jobs may depend on what they are for. */
export type EnqueueManyArgs<
  Job,
  Options,
  ItemOptions = Options,
  Payload = PayloadOf<Job>,
  Item = ItemOf<Payload>,
> =
  | [payloads: readonly Payload[], ...options: OptionsFor<Job, Options & PlainOption>]
  | ([Item] extends [never] ? never : [items: readonly Item[], options: ItemOptions & MergeOption]);

/** What has become of an enqueue. */
export interface Enqueued<Job = unknown> {
  jobId: JobId<Job>;
  /** created and replaced: a new job. kept, merged and throttled: `jobId` is the job that was there. */
  outcome: EnqueueOutcome;
  /** The job that was replaced. It is cancelled. */
  replacedJobId: string | null;
  /** The idempotency key was used before: then the outcome is "kept". */
  deduplicated: boolean;
}
