// enqueue flow: jobs that wait for each other. See migrations/functions/enqueue-flow.sql.
import type { FlowBlocker } from "../flow.ts";
import type { JobStatus, NewJob } from "../job.ts";
import { toFields } from "../job-options.ts";
import { sql } from "./sql.ts";
import { one, type Statement } from "./statement.ts";

export interface NewFlowJob {
  ref: string;
  job: NewJob;
  after: readonly FlowBlocker[] | Readonly<Record<string, readonly FlowBlocker[]>>;
}

export interface EnqueuedFlow {
  flowId: string;
  /** In the order of the call. */
  jobs: { ref: string; id: string; status: JobStatus }[];
  deduplicated: boolean;
}

/** 1 to 1,000 jobs, all or none. A second call with the same key answers with the first flow. */
export function enqueueFlow(
  jobs: readonly NewFlowJob[],
  { idempotencyKey = null }: { idempotencyKey?: string | null } = {},
): Statement<EnqueuedFlow> {
  const request = jobs.map(({ ref, job, after }) => ({
    type: job.type,
    payload: job.payload,
    ...toFields(job),
    ref,
    after,
  }));
  return {
    name: "enqueue flow",
    isRepeatable: idempotencyKey !== null,
    // Every parameter is text and cast here, because drivers encode JSON in different ways.
    build: (schema) => sql`
      select ${schema}.enqueue_flow(${JSON.stringify(request)}::text::jsonb, ${idempotencyKey}::text) as flow`,
    decode: one((row) => {
      const { flow_id, ...made } = row.flow as Omit<EnqueuedFlow, "flowId"> & { flow_id: string };
      return { flowId: flow_id, ...made };
    }),
  };
}
