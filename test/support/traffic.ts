// What a queue in use does to its tables until it is told to stop: enqueues, claims that settle what came before, settles of
// every outcome, look-ups and lists. Each call's time and error are kept.
import { claim, enqueue, findJob, listJobs, settle } from "../../src/core/sql/index.ts";
import type { Statement } from "../../src/core/sql/statement.ts";
import type { Database } from "../../src/queue/ports.ts";
import { newJob } from "./jobs.ts";
import { measureSlowDown } from "./slow-down.ts";
import { complete, times } from "./verbs.ts";

export interface Traffic {
  calls: number;
  /** Jobs whose enqueue was answered. */
  enqueued: number;
  errors: string[];
  /** The longest call. When the traffic has stopped: how long it would have taken on a quiet machine. */
  longestMs: number;
  /** Stops after the running calls have ended. */
  stop(): Promise<void>;
  /** Waits until this many more calls have been made. */
  more(calls: number): Promise<void>;
}

/** The statements of this checkout. A test of an upgrade sends those of the release before. */
export const currentStatements = {
  claim,
  findJob: (id: string): Statement<unknown> => findJob(id),
  listCompleted: (limit: number): Statement<unknown> => listJobs({ status: "completed", limit }),
};

export function startTraffic(
  db: Database,
  {
    connections,
    statements = currentStatements,
  }: { connections: number; statements?: typeof currentStatements },
): Traffic {
  let isAsked = true;
  const machine = measureSlowDown();
  const waiting: { upto: number; resolve: () => void }[] = [];
  const traffic: Traffic = {
    calls: 0,
    enqueued: 0,
    errors: [],
    longestMs: 0,
    stop: async () => {
      isAsked = false;
      await Promise.all(loops);
      traffic.longestMs /= await machine.stop();
    },
    more: (calls) =>
      new Promise((resolve) => {
        waiting.push({ upto: traffic.calls + calls, resolve });
      }),
  };
  const run = async <T>(statement: Statement<T>): Promise<T | undefined> => {
    const beganMs = performance.now();
    const answer = await db.run(statement).catch((error: Error) => {
      traffic.errors.push(
        `${statement.name}: ${error.message} ${(error.cause as Error | undefined)?.message ?? ""}`,
      );
      return undefined;
    });
    traffic.longestMs = Math.max(traffic.longestMs, performance.now() - beganMs);
    traffic.calls++;
    for (const { resolve } of waiting.filter(({ upto }) => traffic.calls >= upto)) resolve();
    return answer;
  };
  const loop = async () => {
    const next = { queue: "default", types: ["echo"], limit: 5, leaseSeconds: 300 };
    while (isAsked) {
      const made = (await run(enqueue(times(10, () => newJob({}))))) ?? [];
      traffic.enqueued += made.length;
      const first = await run(statements.claim(next));
      const finished = (first?.jobs ?? []).map((job) => ({ job, outcome: complete }));
      const second = await run(statements.claim(next, finished));
      const mixed = (second?.jobs ?? []).map((job, n) => ({
        job,
        outcome: n === 0 ? ({ kind: "retry", message: "no", retryInSeconds: 60 } as const) : complete,
      }));
      if (mixed.length > 0) await run(settle(mixed));
      if (made[0]) await run(statements.findJob(made[0].id));
      await run(statements.listCompleted(10));
    }
  };
  const loops = times(connections, loop);
  return traffic;
}
