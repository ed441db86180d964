// What a queue in use does to its tables, on connections of its own, until it is told to stop: enqueues, claims that settle
// what came before, settles of every outcome, look-ups and lists. Each call's time and error are kept.
import type pg from "pg";
import { claim, enqueue, findJob, listJobs, settle } from "../../src/core/sql/index.ts";
import { compile, type Statement } from "../../src/core/sql/statement.ts";
import { newJob } from "./jobs.ts";
import { complete, times } from "./verbs.ts";

export interface Traffic {
  calls: number;
  errors: string[];
  longestMs: number;
  /** Ends after the calls that run. */
  stop(): Promise<void>;
  /** Until so many more calls have been made. */
  more(calls: number): Promise<void>;
}

export function startTraffic(pool: pg.Pool, { connections }: { connections: number }): Traffic {
  let isAsked = true;
  const waiting: { upto: number; resolve: () => void }[] = [];
  const traffic: Traffic = {
    calls: 0,
    errors: [],
    longestMs: 0,
    stop: async () => {
      isAsked = false;
      await Promise.all(loops);
    },
    more: (calls) =>
      new Promise((resolve) => {
        waiting.push({ upto: traffic.calls + calls, resolve });
      }),
  };
  const run = async <T>(client: pg.PoolClient, statement: Statement<T>): Promise<T> => {
    const { text, values } = compile(statement, "sluice");
    const beganMs = performance.now();
    const rows = await client.query(text, values).then(
      (answer) => answer.rows,
      (error: pg.DatabaseError) => {
        traffic.errors.push(`${statement.name}: ${error.code} ${error.message}`);
        return [];
      },
    );
    traffic.longestMs = Math.max(traffic.longestMs, performance.now() - beganMs);
    traffic.calls++;
    for (const { resolve } of waiting.filter(({ upto }) => traffic.calls >= upto)) resolve();
    return statement.decode(rows);
  };
  const loop = async () => {
    const client = await pool.connect();
    const next = { queue: "default", types: ["echo"], limit: 5, leaseSeconds: 300 };
    while (isAsked) {
      const made = await run(client, enqueue(times(10, () => newJob({}))));
      const first = await run(client, claim(next));
      const finished = first.jobs.map((job) => ({ job, outcome: complete }));
      const second = await run(client, claim(next, finished));
      const mixed = second.jobs.map((job, n) => ({
        job,
        outcome: n === 0 ? ({ kind: "retry", message: "no", retryInSeconds: 60 } as const) : complete,
      }));
      if (mixed.length > 0) await run(client, settle(mixed));
      await run(client, findJob(made?.[0]?.id ?? ""));
      await run(client, listJobs({ status: "completed", limit: 10 }));
    }
    client.release();
  };
  const loops = times(connections, loop);
  return traffic;
}
