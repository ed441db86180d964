// Sluice with its real statements (src/core/sql), prepared, over `pg`. As in a drain, completed jobs are settled by the next
// claim.
import { readFileSync } from "node:fs";
import type pg from "pg";
import { migrate } from "../../../src/cli/migrate.ts";
import type { ClaimedJob, Payload, Settlement } from "../../../src/core/job.ts";
import type { Settled } from "../../../src/core/settlements.ts";
import { claim, enqueue, settle } from "../../../src/core/sql/index.ts";
import { compile, type Statement } from "../../../src/core/sql/statement.ts";
import { commonTypes, fillQueue, rareType } from "../../support/large-queue.ts";
import { connect, connectAll, openPool } from "./connections.ts";
import { type Connection, poll } from "./poll.ts";
import { type BenchPayload, leaseSeconds, producers, type System } from "./system.ts";

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

  async open(url) {
    const pool = openPool(url, producers);
    let types: readonly string[] = [type];
    return {
      async enqueue(payloads) {
        const jobs = payloads.map((payload) => ({ type, payload: payload as unknown as Payload }));
        await run(pool, enqueue(jobs));
      },
      async work(options) {
        const clients = await connectAll(url, options.connections);
        return poll(
          clients.map((client) => connectionOf(client, types)),
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

function connectionOf(client: pg.Client, types: readonly string[]): Connection<ClaimedJob> {
  return {
    async claim(limit) {
      const claimed = await run(client, claim({ queue: "default", types, limit, leaseSeconds }));
      return claimed.jobs;
    },
    async settleAndClaim(done, limit) {
      const request = { queue: "default", types, limit, leaseSeconds };
      const claimed = await run(client, claim(request, done.map(completed)));
      if (!claimed) throw new Error("a claim without an answer");
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
