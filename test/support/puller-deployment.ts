// A Worker in workerd with a database of its own, and pullers that claim its jobs over real HTTP.
import { afterAll, afterEach, beforeAll, beforeEach, inject } from "vitest";
import type { JobResponse } from "../../src/contract/jobs.ts";
import type { Payload } from "../../src/core/job.ts";
import type { JobOptions } from "../../src/core/job-options.ts";
import { enqueue } from "../../src/core/sql/index.ts";
import { createPuller, type JobName, type Puller, type PullerOptions } from "../../src/puller/puller.ts";
import { type Relay, startRelay } from "./relay.ts";
import { emptyQueue, type TestDatabase, useTestDatabase } from "./test-database.ts";
import { startWorkerd, type Workerd } from "./workerd.ts";

export interface TestPuller extends Puller {
  /** What `run` resolves or rejects to. */
  done: Promise<void>;
  errors: { error: Error; job: JobName | undefined }[];
}

export interface PullerDeployment {
  db: TestDatabase;
  key: string;
  /** Pullers reach the Worker through it. */
  relay(): Relay;
  /** The Worker reaches the database through it, if the deployment counts statements. */
  databaseRelay(): Relay | undefined;
  /** Starts a puller, which is stopped after the test. */
  pull(options: Partial<PullerOptions> & Pick<PullerOptions, "handlers">): TestPuller;
  enqueue(type: string, payloads: readonly object[], options?: JobOptions): Promise<string[]>;
  look(id: string): Promise<JobResponse>;
  statusesOf(ids: readonly string[]): Promise<Set<string>>;
  /** Calls the API as an admin. */
  call(method: string, path: string, body?: object): Promise<Response>;
  fire(cron: string): Promise<boolean>;
}

const key = "sk_the_key_of_the_puller_tests";

export function usePullerDeployment({ countsStatements = false } = {}): PullerDeployment {
  const db = useTestDatabase();
  const pullers: TestPuller[] = [];
  let workerd: Workerd;
  let relay: Relay;
  let databaseRelay: Relay | undefined;

  beforeAll(async () => {
    const neonEndpoint = inject("neonEndpoint");
    databaseRelay = countsStatements ? await startRelay(neonEndpoint) : undefined;
    const endpoint = databaseRelay ? databaseRelay.url + new URL(neonEndpoint).pathname : neonEndpoint;
    const bindings = { DATABASE_URL: db.url, SLUICE_NEON_ENDPOINT: endpoint };
    const worker = new URL("puller-worker.ts", import.meta.url).pathname;
    workerd = await startWorkerd({ worker, bindings: { ...bindings, SLUICE_ADMIN_KEY: key } });
    relay = await startRelay(workerd.url);
  }, 60_000);
  beforeEach(async () => {
    await emptyQueue(db.pool);
    relay.clear();
  });
  afterEach(async () => {
    await Promise.all(pullers.splice(0).map((puller) => puller.stop()));
  });
  afterAll(async () => {
    await relay.turnOff();
    await workerd.stop();
    await databaseRelay?.turnOff();
  });

  const call: PullerDeployment["call"] = (method, path, body) =>
    fetch(new URL(path, workerd.url), {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
  const look = async (id: string) => (await (await call("GET", `/v1/jobs/${id}`)).json()) as JobResponse;

  return {
    db,
    key,
    relay: () => relay,
    databaseRelay: () => databaseRelay,
    call,
    look,
    pull(options) {
      const errors: TestPuller["errors"] = [];
      const puller = createPuller({
        url: relay.url,
        key,
        handleSignals: false,
        stopSeconds: 5,
        waitSeconds: 1,
        onError: (error, job) => void errors.push({ error, job }),
        ...options,
      });
      const done = puller.run();
      done.catch(() => {}); // a test that expects it awaits `done`
      const started = { ...puller, done, errors };
      pullers.push(started);
      return started;
    },
    async enqueue(type, payloads, options = {}) {
      const jobs = payloads.map((payload) => ({ type, payload: payload as Payload, ...options }));
      return (await db.run(enqueue(jobs))).map(({ id }) => id);
    },
    async statusesOf(ids) {
      const { rows } = await db.pool.query("select distinct status from sluice.jobs where id = any($1)", [
        ids,
      ]);
      return new Set(rows.map(({ status }) => status));
    },
    fire: (cron) => workerd.fire(cron),
  };
}
