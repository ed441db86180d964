// enqueue flow, find flow, list flows, list the jobs of a flow, cancel flow, delete flow, find chain. See
// migrations/functions/flows.sql.
import { sql } from "drizzle-orm";
import type { FlowBlocker } from "../flow.ts";
import type { Job, JobStatus, Json, NewJob } from "../job.ts";
import { toFields } from "../job-options.ts";
import { decodeJob, jobColumns } from "../job-row.ts";
import { listColumns } from "./columns.ts";
import { many, one, type Statement } from "./statement.ts";

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

export interface Flow {
  flowId: string;
  status: "running" | "completed" | "dead" | "cancelled";
  total: number;
  counts: Record<JobStatus, number>;
  createdAt: Date;
}

interface FlowRow extends Pick<Flow, "status" | "total" | "counts"> {
  flow_id: string;
  created_ms: number;
}

function decodeFlow({ flow_id, status, total, counts, created_ms }: FlowRow): Flow {
  return { flowId: flow_id, status, total, counts, createdAt: new Date(created_ms) };
}

export function findFlow(id: string): Statement<Flow | null> {
  return {
    name: "find flow",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.find_flow(${id}::uuid) as flow`,
    decode: one((row) => (row.flow === null ? null : decodeFlow(row.flow as FlowRow))),
  };
}

/** Newest first. */
export function listFlows({ before, limit }: { before?: string | undefined; limit: number }): Statement<Flow[]> {
  return {
    name: "list flows",
    isRepeatable: true,
    build: (schema) => sql`
      select flow from ${schema}.list_flows(${before ?? null}::uuid, ${limit}::int) as flow`,
    decode: many((row) => decodeFlow(row.flow as FlowRow)),
  };
}

/** In the order of the flow. */
export function listFlowJobs(
  id: string,
  { after, limit }: { after?: string | undefined; limit: number },
): Statement<Job[]> {
  return {
    name: "list flow jobs",
    isRepeatable: true,
    build: (schema) => sql`
      select ${listColumns(jobColumns)}
      from ${schema}.flow_jobs(${id}::uuid, ${after ?? null}::uuid, ${limit}::int)`,
    decode: many(decodeJob),
  };
}

/** Answers how many jobs were cancelled, or null if there is no such flow. */
export function cancelFlow(actor: string, id: string): Statement<number | null> {
  return {
    name: "cancel flow",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.cancel_flow(${actor}::text, ${id}::uuid) as answer`,
    decode: one((row) => (row.answer as { cancelled: number } | null)?.cancelled ?? null),
  };
}

/** `running`: it has not ended. `waited_for`: a job outside the flow waits for one of its jobs. Null: there is no such flow. */
export function deleteFlow(
  actor: string,
  id: string,
): Statement<"deleted" | "running" | "waited_for" | null> {
  return {
    name: "delete flow",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.delete_flow(${actor}::text, ${id}::uuid) as answer`,
    decode: one((row) => row.answer as "deleted" | "running" | "waited_for" | null),
  };
}

export interface Chain {
  chainId: string;
  status: JobStatus;
  output: Json;
  /** In order. */
  jobs: string[];
}

/** By the id of any of its jobs. Null if there is no such job. */
export function findChain(id: string): Statement<Chain | null> {
  return {
    name: "find chain",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.chain_of(${id}::uuid) as chain`,
    decode: one((row) => {
      if (row.chain === null) return null;
      const { chain_id, ...chain } = row.chain as Omit<Chain, "chainId"> & { chain_id: string };
      return { chainId: chain_id, ...chain };
    }),
  };
}
