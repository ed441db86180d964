// graphile-worker with its local queue and batched completions, its fastest documented setting: an instance for each
// connection. At batch 1 it is one instance that claims and completes job by job. Its claims are not
// visible from outside, so they are timed in the connection pool that it gets. Its listening connections come on top.
// Ordered keys are its named queues.
import type pg from "pg";
import { loadPeer, versionOf } from "../peers.ts";
import { openPool } from "./connections.ts";
import { type BenchPayload, idleMs, producers, type System, type WorkOptions } from "./system.ts";

/** The parts of its types that are used. A type check must work without the peers. */
interface Graphile {
  Logger: new (factory: () => () => void) => object;
  run(options: object): Promise<{ promise: Promise<void>; stop(): Promise<void> }>;
  runMigrations(options: object): Promise<void>;
  makeWorkerUtils(options: object): Promise<Utils>;
}
interface Utils {
  addJob(identifier: string, payload: object, spec: { queueName?: string }): Promise<unknown>;
  addJobs(jobs: readonly { identifier: string; payload: object; queueName?: string }[]): Promise<unknown>;
  release(): Promise<void>;
}

const identifier = "mail";
/** As in its documentation on performance. */
const concurrentJobs = 24;
const rowsPerFill = 50_000;

export function graphileWorker(): System {
  const load = () => loadPeer<Graphile>("graphile-worker");
  return {
    name: "graphile-worker",
    version: versionOf("graphile-worker"),
    hotTables: ["graphile_worker._private_jobs"],
    jobTables: ["graphile_worker._private_jobs"],
    keyUses: ["ordered"],
    async install(url) {
      const { runMigrations, Logger } = await load();
      await runMigrations({ connectionString: url, logger: new Logger(() => () => {}) });
    },

    async open(url, keys) {
      const { makeWorkerUtils, Logger } = await load();
      const pool = openPool(url, producers);
      const specOf = ({ key }: BenchPayload) => (keys && key !== undefined ? { queueName: key } : {});
      const utils = await makeWorkerUtils({ pgPool: pool, logger: new Logger(() => () => {}) });
      return {
        async enqueue(payloads) {
          const [first] = payloads;
          if (payloads.length === 1 && first) await utils.addJob(identifier, first, specOf(first));
          else await utils.addJobs(payloads.map((payload) => ({ identifier, payload, ...specOf(payload) })));
        },
        work: async (options) => startWorker(await load(), url, options),
        async fill({ waiting, scheduled }) {
          for (const [jobs, delaySeconds] of [
            [waiting, 0],
            [scheduled, 3_600],
          ] as const) {
            for (let from = 0; from < jobs; from += rowsPerFill)
              await pool.query(fillText, [
                identifier,
                delaySeconds,
                from,
                Math.min(jobs, from + rowsPerFill) - 1,
              ]);
          }
        },
        async unfinished() {
          const { rows } = await pool.query("select count(*)::int as jobs from graphile_worker.jobs");
          return rows[0].jobs;
        },
        async close() {
          await utils.release();
          await pool.end();
        },
      };
    },
  };
}

async function startWorker({ run, Logger }: Graphile, url: string, options: WorkOptions) {
  const isSingle = options.batch === 1;
  const instances = isSingle ? 1 : options.connections;
  let settledMs = 0;
  const pool = await openTimedPool(url, options.connections + instances, (kind, ms, jobs) => {
    if (kind === "claim" && jobs > 0) options.onClaim?.({ ms, jobs });
    if (kind === "settle") settledMs = performance.now();
  });
  const startedMs = performance.now();
  const preset = {
    worker: {
      concurrentJobs: isSingle ? options.connections : Math.min(concurrentJobs, options.batch),
      pollInterval: idleMs,
      ...(isSingle
        ? {}
        : { localQueue: { size: options.batch }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }),
    },
  };
  const task = async (payload: BenchPayload) => {
    if (!options.run(payload)) throw new Error("busy");
  };
  const runners = await Promise.all(
    Array.from({ length: instances }, () =>
      run({
        pgPool: pool,
        preset,
        taskList: { [identifier]: task },
        noHandleSignals: true,
        logger: new Logger(() => () => {}),
      }),
    ),
  );
  return {
    startedMs,
    settledMs: () => settledMs,
    async stop() {
      await Promise.all(runners.map((runner) => runner.stop()));
      await pool.end();
    },
  };
}

type Timed = (kind: "claim" | "settle", ms: number, jobs: number) => void;

/** All its connections are open when it returns. */
async function openTimedPool(url: string, max: number, onQuery: Timed): Promise<pg.Pool> {
  const pool = openPool(url, max);
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    const timed = (...args: unknown[]) => {
      const kind = kindOf((args[0] as { text?: string } | undefined)?.text ?? "");
      const result = query(...args);
      if (!kind || !(result instanceof Promise)) return result;
      const sentMs = performance.now();
      return result.then((answer: pg.QueryResult) => {
        onQuery(kind, performance.now() - sentMs, answer.rows.length);
        return answer;
      });
    };
    Object.assign(client, { query: timed });
  });
  const clients = await Promise.all(Array.from({ length: max }, () => pool.connect()));
  for (const client of clients) client.release();
  return pool;
}

function kindOf(text: string): "claim" | "settle" | undefined {
  if (!text.includes("_private_jobs")) return undefined;
  return /^\s*with j(_raw)? as \(\s*select/.test(text) ? "claim" : "settle";
}

const fillText = `
  select count(*)
  from graphile_worker.add_jobs(array(
    select row($1::text,
               json_build_object('n', n, 'address', 'someone@example.com',
                                 'subject', 'a subject of a common length', 'template', 'welcome'),
               null, now() + make_interval(secs => $2::int), null, null,
               (array[1, 5, 9])[n / 600 % 3 + 1], null)::graphile_worker.job_spec
    from generate_series($3::int, $4::int) as n))`;
