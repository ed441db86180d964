// find flow, list flows, list the jobs of a flow, cancel flow, delete flow. See migrations/functions/flows.sql.
import type { FlowStatus } from "../flow.ts";
import type { Job, JobStatus } from "../job.ts";
import { decodeJob, jobColumns } from "../job-row.ts";
import { listColumns } from "./columns.ts";
import { sql } from "./sql.ts";
import { many, one, type Statement } from "./statement.ts";

export interface Flow {
  flowId: string;
  status: FlowStatus;
  total: number;
  counts: Record<JobStatus, number>;
  createdAt: Date;
}

interface FlowRow extends Pick<Flow, "status" | "total" | "counts"> {
  flow_id: string;
  created_at: string;
}

function decodeFlow({ flow_id, status, total, counts, created_at }: FlowRow): Flow {
  return { flowId: flow_id, status, total, counts, createdAt: new Date(created_at) };
}

export function findFlow(id: string): Statement<Flow | null> {
  return {
    name: "find flow",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.find_flow(${id}::uuid) as flow`,
    decode: one((row) => (row.flow === null ? null : decodeFlow(row.flow as FlowRow))),
  };
}

export interface FlowFilter {
  status?: FlowStatus | undefined;
  /** The `next` of the previous page. */
  before?: string | undefined;
  limit: number;
}

export interface FlowPage {
  flows: Flow[];
  /** The next page has the flows before this id. Null: the search came to the end. */
  next: string | null;
}

/** Newest first. With a status, a page may be shorter than its limit, or empty, although there are more. See search-flows.sql. */
export function listFlows({ status, before, limit }: FlowFilter): Statement<FlowPage> {
  return {
    name: "list flows",
    isRepeatable: true,
    build: (schema) => sql`
      select ${schema}.search_flows(${status ?? null}::text, ${before ?? null}::uuid, ${limit}::int) as page`,
    decode: one((row) => {
      const { flows, searched_to } = row.page as { flows: FlowRow[]; searched_to: string | null };
      return { flows: flows.map(decodeFlow), next: searched_to };
    }),
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
