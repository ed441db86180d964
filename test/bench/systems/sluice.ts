// Sluice with its real statements (src/core/sql), prepared, over `pg`. As in a drain, completed jobs are settled by the next
// claim.
import { readFileSync } from "node:fs";
import type pg from "pg";
import { migrate } from "../../../src/cli/migrate.ts";
import type { ClaimedJob, NewJob, Payload, Settlement } from "../../../src/core/job.ts";
import { defaultQueuePolicy } from "../../../src/core/key-policy.ts";
import type { Settled } from "../../../src/core/settlements.ts";
import type { Claim } from "../../../src/core/sql/claim.ts";
import { claim, enqueue, settle } from "../../../src/core/sql/index.ts";
import { compile, type Statement } from "../../../src/core/sql/statement.ts";
import { commonTypes, fillQueue, rareType } from "../../support/large-queue.ts";
import { connect, connectAll, openPool } from "./connections.ts";
import { type Connection, poll } from "./poll.ts";
import { type BenchPayload, type Keys, leaseSeconds, producers, type System } from "./system.ts";

const type = "mail";
const retryInSeconds = 0.05;
const packageFile = new URL("../../../package.json", import.meta.url);

export const sluice: System = {
  name: "sluice",
  version: (JSON.parse(readFileSync(packageFile, "utf8")) as { version: string }).version,
  hotTables: ["sluice.ready", "sluice.scheduled", "sluice.lease", "sluice.ledger"],
  jobTables: [
    "sluice.job",
    "sluice.ready",
    "sluice.scheduled",
    "sluice.lease",
    "sluice.done",
    "sluice.ledger",
  ],
  install: (url) => migrate({ databaseUrl: url }),

  keyUses: ["ordered", "shared"],

  async open(url, keys) {
    const pool = openPool(url, producers);
    let types: readonly string[] = [type];
    return {
      enqueue: async (payloads) =>
        void (await run(pool, enqueue(payloads.map((payload) => toJob(payload, keys))))),
      async work(options) {
        const clients = await connectAll(url, options.connections);
        return poll(
          clients.map((client) => connectionOf(client, { types, ...claimOptions(keys, options.batch) })),
          options,
        );
      },
      async fill(size) {
        const client = await connect(url);
        await fillQueue(client, { ...size, finished: 0, dead: 0 });
        await client.end();
        types = [...commonTypes, rareType];
      },
      async unfinished() {
        const { rows } = await pool.query("select sum(pending + leased)::int as jobs from sluice.books");
        return rows[0].jobs;
      },
      close: () => pool.end(),
    };
  },
};

function toJob(payload: BenchPayload, keys: Keys | undefined): NewJob {
  const job = { type, payload: payload as unknown as Payload };
  if (!keys || payload.key === undefined) return job;
  return keys.use === "ordered" ? { ...job, partitionKey: payload.key } : { ...job, fairKey: payload.key };
}

export type ClaimOptions = Pick<Claim, "types" | "run" | "policy" | "buckets" | "owners">;

/** As a drain does: a run is as long as a batch. */
function claimOptions(keys: Keys | undefined, batch: number): Omit<ClaimOptions, "types"> {
  if (!keys) return {};
  return keys.use === "ordered"
    ? { run: batch }
    : { policy: { ...defaultQueuePolicy, concurrency: keys.cap ?? null } };
}

export function connectionOf(client: pg.Client, options: ClaimOptions): Connection<ClaimedJob> {
  const request = (limit: number) => ({ queue: "default", limit, leaseSeconds, ...options });
  return {
    async claim(limit) {
      const claimed = await run(client, claim(request(limit)));
      return claimed.jobs;
    },
    async settleAndClaim(done, limit) {
      const claimed = await run(client, claim(request(limit), done.map(completed)));
      check(claimed.settled);
      return claimed.jobs;
    },
    payloadOf: (job) => job.payload as unknown as BenchPayload,
    async settle(done, failed) {
      const settlements: Settlement[] = [
        ...done.map(completed),
        ...failed.map((job) => ({
          job,
          outcome: { kind: "retry" as const, message: "busy", retryInSeconds },
        })),
      ];
      check(await run(client, settle(settlements)));
    },
    close: () => client.end(),
  };
}

const completed = (job: ClaimedJob): Settlement => ({ job, outcome: { kind: "complete", output: null } });

function check(settled: readonly Settled[]): void {
  if (!settled.every(({ applied }) => applied)) throw new Error("a settle was not applied");
}

async function run<T>(client: pg.Pool | pg.Client, statement: Statement<T>): Promise<T> {
  const { rows } = await client.query({ name: statement.name, ...compile(statement) });
  return statement.decode(rows);
}
