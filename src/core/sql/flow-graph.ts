// flow graph: the jobs of a flow and what they wait for, without their payloads. See migrations/functions/flow-graph.sql.
import type { DeadReason, JobStatus } from "../job.ts";
import { type JobStep, type StepRow, toJobSteps } from "../job-steps.ts";
import { sql } from "./sql.ts";
import { many, type Row, type Statement, time, timeOf, timeOrNull } from "./statement.ts";

export interface FlowNode {
  id: string;
  type: string;
  status: JobStatus;
  attempts: number;
  maxAttempts: number;
  createdAt: Date;
  scheduledAt: Date;
  /** Of the last attempt. */
  startedAt: Date | null;
  endedAt: Date | null;
  deadReason: DeadReason | null;
  /** The first job of its chain, and its place in it. */
  chainId: string | null;
  chainIndex: number | null;
  /** The jobs of the same flow that it waits or waited for. Of a chain, the first job is named. */
  blockers: string[];
  /** How many others it waits or waited for. */
  outside: number;
  /** The last 20 failed attempts, oldest first. */
  failures: { startedAt: Date | null; failedAt: Date }[];
  /** The first 20 durable steps, without their values. None if its type hides them. */
  steps: JobStep[];
}

/** In the order of the flow. */
export function flowGraph(
  id: string,
  {
    after,
    limit,
    hiddenTypes,
  }: { after?: string | undefined; limit: number; hiddenTypes: readonly string[] },
): Statement<FlowNode[]> {
  return {
    name: "flow graph",
    isRepeatable: true,
    build: (schema) => sql`
      select id, type, status, attempts, max_attempts, ${time("created_at")}, ${time("scheduled_at")}, ${time("started_at")},
             ${time("ended_at")}, dead_reason, chain_id, chain_index, blockers, outside, failures, steps
      from ${schema}.flow_graph(${id}::uuid, ${after ?? null}::uuid, ${limit}::int, ${hiddenTypes}::text[])`,
    decode: many(decodeNode),
  };
}

function decodeNode(row: Row): FlowNode {
  const { failures, steps } = row;
  return {
    id: String(row.id),
    type: String(row.type),
    status: row.status as JobStatus,
    attempts: Number(row.attempts),
    maxAttempts: Number(row.max_attempts),
    createdAt: timeOf(row.created_at),
    scheduledAt: timeOf(row.scheduled_at),
    startedAt: timeOrNull(row.started_at),
    endedAt: timeOrNull(row.ended_at),
    deadReason: row.dead_reason as DeadReason | null,
    chainId: row.chain_id as string | null,
    chainIndex: row.chain_index as number | null,
    blockers: row.blockers as string[],
    outside: Number(row.outside),
    failures: (failures as [number | null, number][]).map(([startedMs, failedMs]) => ({
      startedAt: startedMs === null ? null : new Date(startedMs),
      failedAt: new Date(failedMs),
    })),
    steps: toJobSteps(steps as StepRow[]),
  };
}
