// The Worker of this repository in workerd, with a database of its own, and the command line that reaches it.
import { afterAll, beforeAll, beforeEach, inject } from "vitest";
import { type Relay, startRelay } from "../support/relay.ts";
import { emptyQueue, type TestDatabase, useTestDatabase } from "../support/test-database.ts";
import { startWorkerd, type Workerd } from "../support/workerd.ts";
import { type CliOptions, type CliRun, type Ended, startCli, until, useCli } from "./run-cli.ts";

export type Way = "worker" | "database";

export interface CliDeployment {
  db: TestDatabase;
  /** The Worker's address can be turned off. */
  relay(): Relay;
  /** The variables that say where it is. */
  env(way: Way): Record<string, string>;
  fire(cron: string): Promise<boolean>;
  start(args: readonly string[], options?: CliOptions & { way?: Way }): CliRun;
  run(args: readonly string[], options?: CliOptions & { way?: Way }): Promise<Ended>;
  /** Runs it with --json and answers with what it printed. It must end with that code. */
  json(args: readonly string[], options?: CliOptions & { way?: Way; code?: number }): Promise<unknown>;
  /** Sends a request to the Worker, without the command line. */
  post(path: string, body: object): Promise<Record<string, string>>;
  /** Enqueues a job over the Worker and answers with its id. */
  enqueue(type: string, payload?: object): Promise<string>;
}

export const adminKey = "sk_the_key_of_the_cli_tests";

export function useCliDeployment(): CliDeployment {
  useCli();
  const db = useTestDatabase();
  let workerd: Workerd;
  let relay: Relay;

  beforeAll(async () => {
    const worker = new URL("../../src/worker.ts", import.meta.url).pathname;
    const bindings = {
      DATABASE_URL: db.url,
      SLUICE_NEON_ENDPOINT: inject("neonEndpoint"),
      SLUICE_ADMIN_KEY: adminKey,
      SLUICE_ALLOW_PRIVATE_TARGETS: "true",
    };
    workerd = await startWorkerd({ worker, bindings });
    relay = await startRelay(workerd.url);
  }, 60_000);
  // A drain of the test before may still hold locks, so that the two wait for each other.
  beforeEach(() =>
    until("the queue is empty", () =>
      emptyQueue(db.pool).then(
        () => true,
        (error: { code?: string }) => {
          if (error.code !== "40P01") throw error;
          return false;
        },
      ),
    ),
  );
  beforeEach(() => relay.clear());
  afterAll(async () => {
    await relay.turnOff();
    await workerd.stop();
  });

  const envOf = (way: Way) =>
    way === "worker" ? { SLUICE_URL: relay.url, SLUICE_KEY: adminKey } : { DATABASE_URL: db.url };
  const start: CliDeployment["start"] = (args, { way = "worker", env, ...options } = {}) => {
    const flags = way === "database" ? ["--database"] : [];
    return startCli([...args, ...flags], {
      ...options,
      env: { ...envOf(way), ...env },
    });
  };
  const post: CliDeployment["post"] = async (path, body) => {
    const headers = { authorization: `Bearer ${adminKey}`, "content-type": "application/json" };
    const response = await fetch(relay.url + path, { method: "POST", headers, body: JSON.stringify(body) });
    return (await response.json()) as Record<string, string>;
  };
  const run: CliDeployment["run"] = (args, options) => start(args, options).ended;

  return {
    db,
    relay: () => relay,
    env: envOf,
    fire: (cron) => workerd.fire(cron),
    start,
    run,
    async json(args, { code = 0, ...options } = {}) {
      const ended = await run([...args, "--json"], options);
      if (ended.code !== code) throw new Error(`${args.join(" ")} ended with ${ended.code}: ${ended.stderr}`);
      return JSON.parse(ended.stdout);
    },
    post,
    enqueue: async (type, payload = {}) => (await post("/v1/jobs", { type, payload })).job_id ?? "",
  };
}
