// Scenarios that a mutation of a function makes go wrong. Each shows that a rule of keys is needed.
import type pg from "pg";
import { describe, expect, test } from "vitest";
import { cancel } from "../../src/core/sql/index.ts";
import { type KeyedJobs, keyedJobsOf } from "../support/keyed-jobs.ts";
import { type Mutation, rewriteFunction } from "../support/rewrite-function.ts";
import { inSession } from "../support/sessions.ts";
import { type TestDatabase, useTestDatabase } from "../support/test-database.ts";
import { runOn } from "./gate/gate-sql.ts";

export interface Scenario {
  title: string;
  mutations: Mutation[];
  /** Answers with the names of the jobs in the order in which they ran. */
  run(jobs: KeyedJobs, db: TestDatabase): Promise<string>;
  right: string;
}

/** Runs `meanwhile` while a transaction is open, and then ends it. */
export async function whileOpen(
  db: TestDatabase,
  { begin, end }: { begin: (client: pg.PoolClient) => Promise<unknown>; end: "commit" | "rollback" },
  meanwhile: (client: pg.PoolClient) => Promise<string>,
): Promise<string> {
  return inSession(db.pool, async (client) => {
    await client.query("begin");
    await begin(client);
    const names = await meanwhile(client);
    await client.query(end);
    return names;
  });
}

/** The cancel of a job is open for a while and then rolled back. */
export const holdCancel = async (
  jobs: KeyedJobs,
  db: TestDatabase,
  name: string,
  work: () => Promise<string>,
) => {
  const id = await jobs.idOf(name);
  const begin = (client: pg.PoolClient) => runOn(client, cancel(id));
  return whileOpen(db, { begin, end: "rollback" }, work);
};

/** Jobs of another queue take so many seqs that a dispatcher is far behind. */
export const takeSeqs = (jobs: KeyedJobs) =>
  jobs.verbs.query(
    "select sluice.enqueue_many('echo', array_fill('{}'::jsonb, array[2500]), queue => 'other')",
  );

export const takeOne = async (jobs: KeyedJobs) => {
  const { jobs: taken } = await jobs.verbs.claimBatch({ limit: 1 });
  return taken.map(({ payload }) => payload.name).join(" ");
};

export function testMutations(scenarios: readonly Scenario[]): void {
  describe.concurrent.each(scenarios)("$title", ({ mutations, run, right }) => {
    const db = useTestDatabase();
    const other = useTestDatabase();

    test("is a mutation that a scenario notices, and without it the scenario is right", async () => {
      expect(await run(keyedJobsOf(db), db)).toBe(right);
      for (const mutation of mutations) await rewriteFunction(other.pool, mutation);
      expect(await run(keyedJobsOf(other), other)).not.toBe(right);
    });
  });
}
