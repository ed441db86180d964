// Describes a flow: jobs, and what each of them waits for. A job can wait only for jobs that were added before it, so a flow
// has no cycles.
import type { FlowIds, FlowRef, JobId, OptionsFor, PayloadOf, TypedJob } from "./typed-job.ts";

export const flowStatuses = ["running", "completed", "dead", "cancelled"] as const;
export type FlowStatus = (typeof flowStatuses)[number];

export interface FlowBuilder<Options> {
  /** Adds a job. The answer can be given to jobs that wait for it. */
  add<Job extends TypedJob>(
    job: Job,
    payload: PayloadOf<Job>,
    ...options: OptionsFor<Job, Options, "flow">
  ): FlowRef<Job>;
}

/** A job of the flow, or an id of a job that is already there. */
export type FlowBlocker = string | { job_id: string };

export interface FlowJob<Options, Job extends TypedJob = TypedJob> {
  ref: string;
  job: Job;
  payload: object;
  options: Options;
  after: Record<string, FlowBlocker[]>;
}

type AnyOptions = { after?: Record<string, Waitable | readonly Waitable[]> };
type Waitable = JobId | FlowRef;

/** The ids of jobs that are waited for: a list, or for each slot one or a list. */
export type After = readonly string[] | Readonly<Record<string, string | readonly string[]>> | null;

/** A list for each slot. */
export function toLists(after: After): readonly string[] | Record<string, string[]> {
  if (Array.isArray(after)) return after;
  return Object.fromEntries(Object.entries(after ?? {}).map(([slot, ids]) => [slot, [ids].flat()]));
}

export interface DescribedFlow<Options, Refs> {
  jobs: FlowJob<Options>[];
  /** What the description has returned, with ids in the place of refs. `ids` are in the order of the jobs. */
  toIds(ids: readonly string[]): FlowIds<Refs>;
}

/** Refs are the numbers of the jobs, so they say where a job stands when a request is refused. */
export function describeFlow<Options, Refs>(
  describe: (flow: FlowBuilder<Options>) => Refs,
): DescribedFlow<Options, Refs> {
  const jobs: FlowJob<Options>[] = [];
  const refs = new Set<FlowRef>();
  const toBlocker = (blocker: Waitable): FlowBlocker => {
    if (typeof blocker === "string") return { job_id: blocker };
    if (!refs.has(blocker)) throw new TypeError("a job of another flow cannot be waited for: use its id");
    return blocker.ref;
  };
  const returned = describe({
    add(job, payload, ...[given]) {
      const { after = {}, ...options } = (given ?? {}) as AnyOptions;
      const ref = { ref: String(jobs.length) };
      jobs.push({
        ref: ref.ref,
        job,
        payload,
        options: options as Options,
        after: Object.fromEntries(
          Object.entries(after).map(([slot, blockers]) => [slot, [blockers].flat().map(toBlocker)]),
        ),
      });
      refs.add(ref);
      return ref;
    },
  });
  const toIds = (value: unknown, ids: readonly string[]): unknown => {
    if (refs.has(value as FlowRef)) return ids[Number((value as FlowRef).ref)];
    if (Array.isArray(value)) return value.map((item) => toIds(item, ids));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, toIds(item, ids)]));
  };
  return { jobs, toIds: (ids) => toIds(returned, ids) as FlowIds<Refs> };
}
