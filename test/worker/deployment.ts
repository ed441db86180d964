// A deployment in workerd for one test file, with its own job types, settings and database. It connects to the database
// as a role that does not own the tables. Tests call its rounds and requests directly, each with its own execution context.
import { createExecutionContext, createScheduledController, waitOnExecutionContext } from "cloudflare:test";
import { env as workerEnv } from "cloudflare:workers";
import { neon, neonConfig } from "@neondatabase/serverless";
import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import { enqueueResponse, jobResponse } from "../../src/contract/jobs.ts";
import { hyperdrive } from "../../src/hyperdrive.ts";
import {
  type JobDefinition,
  type QueueDefinition,
  type ScheduleDefinition,
  sluice,
} from "../../src/index.ts";
import { emptyQueue } from "../support/empty-queue.ts";
import { asOwner, asWorker } from "../support/worker-role.ts";
import { documentedAnswer } from "./documented-answer.ts";

export const adminKey = "sk_the_key_of_the_worker_tests";
export const crons = { drain: "* * * * *", reap: "*/2 * * * *", watch: "1-59/2 * * * *" };

export interface WorkerTestEnv {
  DATABASE_URL: string;
  SLUICE_NEON_ENDPOINT: string;
  RECEIVER_URL: string;
}

export interface Deployment {
  databaseUrl: string;
  /** Runs a round. Resolves when the round and everything in its waitUntil have ended. */
  fire(cron?: string, settings?: object): Promise<void>;
  call(path: string, init?: RequestInit, settings?: object): Promise<Response>;
  enqueue(job: object, settings?: object): Promise<string>;
  /** Enqueues by SQL, so that no drain is nudged. */
  enqueueMany(type: string, payloads: readonly object[], options?: { queue?: string }): Promise<string[]>;
  look(id: string): Promise<ReturnType<typeof jobResponse.parse>>;
  query<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>;
  /** Makes scheduled jobs due. */
  bringForward(): Promise<void>;
  /** Resolves when everything that runs after the responses has ended. */
  quiet(): Promise<void>;
}

export const bindings = workerEnv as unknown as WorkerTestEnv;

/** `settings` override the bindings of the worker project. They may need the database's URL. SELF and CLOCK are left out, because they lead to another Worker. */
export function useDeployment(
  jobs: readonly JobDefinition[],
  settings: object | ((databaseUrl: string) => object) = {},
  queues: readonly QueueDefinition[] = [],
  schedules?: readonly ScheduleDefinition[],
): Deployment {
  const name = `worker_${crypto.randomUUID().replaceAll("-", "")}`;
  const url = (database: string) => asOwner(bindings.DATABASE_URL).replace(/[^/]+$/, database);
  const { SELF: _, CLOCK: __, ...own } = workerEnv as unknown as WorkerTestEnv & Record<string, unknown>;
  const databaseUrl = asWorker(url(name));
  const over = typeof settings === "function" ? settings(databaseUrl) : settings;
  const env = { ...own, DATABASE_URL: databaseUrl, ...over };
  const worker = sluice({ jobs, queues, database: hyperdrive, ...(schedules && { schedules }) });
  const contexts: ExecutionContext[] = [];
  neonConfig.fetchEndpoint = bindings.SLUICE_NEON_ENDPOINT;

  beforeAll(() =>
    neon(url("postgres")).query(`create database ${name} template sluice_template strategy file_copy`),
  );
  // Whatever a test left running would keep the database from being emptied.
  beforeEach(() => quiet().then(() => neon(url(name)).query(emptyQueue)));
  afterAll(() => neon(url("postgres")).query(`drop database ${name} with (force)`));

  const query: Deployment["query"] = async (text, values = []) =>
    (await neon(url(name)).query(text, values)) as never;

  const call: Deployment["call"] = async (path, init = {}, over = {}) => {
    const context = createExecutionContext();
    contexts.push(context);
    const headers = { authorization: `Bearer ${adminKey}`, "content-type": "application/json" };
    const request = new Request(`https://sluice.example${path}`, { headers, ...init });
    const response = await worker.fetch(request as never, { ...env, ...over }, context as never);
    return documentedAnswer(request, response as never);
  };

  return {
    databaseUrl,
    query,
    call,
    async fire(cron = crons.drain, over = {}) {
      const context = createExecutionContext();
      const controller = createScheduledController({ cron });
      try {
        await worker.scheduled(controller as never, { ...env, ...over }, context as never);
      } finally {
        await waitOnExecutionContext(context);
      }
    },
    async enqueue(job, over = {}) {
      const response = await call("/v1/jobs", { method: "POST", body: JSON.stringify(job) }, over);
      expect(response.status).toBe(201);
      return enqueueResponse.parse(await response.json()).job_id;
    },
    async enqueueMany(type, payloads, { queue } = {}) {
      const text = "select sluice.enqueue_many($1, array(select jsonb_array_elements($2::jsonb)), $3) as id";
      const rows = await query<{ id: string }>(text, [type, JSON.stringify(payloads), queue ?? null]);
      return rows.map((row) => row.id);
    },
    async look(id) {
      const response = await call(`/v1/jobs/${id}`);
      expect(response.status).toBe(200);
      return jobResponse.parse(await response.json());
    },
    async bringForward() {
      await query("update sluice.scheduled set run_at = now()");
      await query("select sluice.reset_cursors()");
    },
    quiet,
  };

  async function quiet() {
    for (let context = contexts.pop(); context; context = contexts.pop())
      await waitOnExecutionContext(context);
  }
}
