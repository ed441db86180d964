// find blockers, find outcomes, find chain: what became of jobs that others wait for. See migrations/functions/blockers.sql.
import { type BlockerRows, type JobBlockers, toBlockers } from "../blocker-row.ts";
import type { JobStatus, Json } from "../job.ts";
import { sql } from "./sql.ts";
import { one, type Statement } from "./statement.ts";

/** By slot. Some of the jobs that a job waited for, from the place `from` on. */
export function findBlockers(
  id: string,
  { from, limit }: { from: number; limit: number },
): Statement<JobBlockers> {
  return {
    name: "find blockers",
    isRepeatable: true,
    build: (schema) =>
      sql`select ${schema}.blockers_of(${id}::uuid, ${from}::int, ${limit}::int) as blockers`,
    decode: one((row) => toBlockers((row.blockers ?? {}) as BlockerRows)),
  };
}

/** In the order of the ids. Of a job that continued, the last of its chain counts. */
export function findOutcomes(ids: readonly string[]): Statement<JobEnd[]> {
  return {
    name: "find outcomes",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.outcomes_of(${ids}::uuid[]) as outcomes`,
    decode: one((row) =>
      (row.outcomes as { job_id: string; status: JobStatus; output: Json }[]).map(({ job_id, ...end }) => ({
        id: job_id,
        ...end,
      })),
    ),
  };
}

export interface JobEnd {
  id: string;
  status: JobStatus;
  output: Json;
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
