// pg-boss with fetch and complete in batches. That is faster than its own workers, which poll at most twice a second.
// Ordered keys are its policy key_strict_fifo.
import { loadPeer, versionOf } from "../peers.ts";
import { openPool } from "./connections.ts";
import { type Connection, poll } from "./poll.ts";
import { type BenchPayload, type Keys, leaseSeconds, producers, type System } from "./system.ts";

/** The parts of its types that are used. A type check must work without the peers. */
interface Boss {
  on(event: "error", listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  stop(options: { graceful: boolean }): Promise<void>;
  createQueue(name: string, options: object): Promise<void>;
  send(name: string, data: object, options: object): Promise<string | null>;
  insert(name: string, jobs: readonly object[]): Promise<unknown>;
  fetch(name: string, options: { batchSize: number }): Promise<BossJob[]>;
  complete(name: string, ids: string[]): Promise<unknown>;
  fail(name: string, ids: string[]): Promise<unknown>;
}
interface BossJob {
  id: string;
  data: BenchPayload;
}

const plainQueue = "bench";
const orderedQueue = "bench-ordered";
const rowsPerFill = 10_000;

export function pgBoss(): System {
  const open = async (url: string, connections: number): Promise<Boss> => {
    const { PgBoss } = await loadPeer<{ PgBoss: new (options: object) => Boss }>("pg-boss");
    const boss = new PgBoss({ connectionString: url, max: connections, supervise: false, schedule: false });
    boss.on("error", (error) => console.error(`pg-boss: ${error.message}`));
    await boss.start();
    return boss;
  };
  return {
    name: "pg-boss",
    version: versionOf("pg-boss"),
    hotTables: ["pgboss.job"],
    jobTables: ["pgboss.job"],
    keyUses: ["ordered"],
    async install(url) {
      const boss = await open(url, 1);
      const options = { retryLimit: 5, retryDelay: 0, expireInSeconds: leaseSeconds };
      await boss.createQueue(plainQueue, options);
      await boss.createQueue(orderedQueue, { ...options, policy: "key_strict_fifo" });
      await boss.stop({ graceful: false });
    },

    async open(url, keys) {
      const boss = await open(url, producers);
      const queue = keys ? orderedQueue : plainQueue;
      const pool = openPool(url, 1);
      return {
        async enqueue(payloads) {
          const [first] = payloads;
          if (payloads.length === 1 && first) await boss.send(queue, first, keyOf(first, keys));
          else
            await boss.insert(
              queue,
              payloads.map((data) => ({ data, ...keyOf(data, keys) })),
            );
        },
        async work(options) {
          const worker = await open(url, options.connections);
          const connections = Array.from({ length: options.connections }, () => connectionOf(worker, queue));
          const polling = poll(connections, options);
          return {
            ...polling,
            stop: () => polling.stop().finally(() => worker.stop({ graceful: false })),
          };
        },
        async fill({ waiting, scheduled }) {
          const jobs = waiting + scheduled;
          let next = 0;
          const insert = async () => {
            while (next < jobs) {
              const from = next;
              next = Math.min(next + rowsPerFill, jobs);
              const rows = Array.from({ length: next - from }, (_, index) =>
                filledJob(from + index, from + index >= waiting),
              );
              await boss.insert(queue, rows);
            }
          };
          await Promise.all(Array.from({ length: producers }, insert));
        },
        async unfinished() {
          const { rows } = await pool.query(
            "select count(*)::int as jobs from pgboss.job where name = $1 and state < 'completed'",
            [queue],
          );
          return rows[0].jobs;
        },
        async close() {
          await boss.stop({ graceful: false });
          await pool.end();
        },
      };
    },
  };
}

function keyOf({ key }: BenchPayload, keys: Keys | undefined): object {
  return keys ? { singletonKey: key } : {};
}

/** Each loop uses one connection of the pool. */
function connectionOf(boss: Boss, queue: string): Connection<BossJob> {
  const idsOf = (jobs: readonly BossJob[]) => jobs.map((job) => job.id);
  return {
    claim: (limit) => boss.fetch(queue, { batchSize: limit }),
    payloadOf: (job) => job.data,
    async settle(done, failed) {
      if (done.length > 0) await boss.complete(queue, idsOf(done));
      if (failed.length > 0) await boss.fail(queue, idsOf(failed));
    },
    close: async () => {},
  };
}

function filledJob(n: number, isLater: boolean): object {
  const subject = "a subject of a common length";
  return {
    data: { n, address: "someone@example.com", subject, template: "welcome" },
    priority: [1, 5, 9][Math.floor(n / 600) % 3],
    ...(isLater ? { startAfter: 3_600 } : {}),
  };
}
