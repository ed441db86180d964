// `sluice dev`: everything a Worker needs, on this machine. It starts the parts in order and stops them in reverse order.
// When one part ends, it stops the others too.
import { join } from "node:path";
import { defaultSchema } from "../core/schema-name.ts";
import { parseSettings } from "../edge/settings/env.ts";
import { demoSettings, startDemo, writeDemoConfig } from "./demo.ts";
import { databaseName, makeDatabase, openPostgres } from "./dev-database.ts";
import {
  keptAdminKey,
  makeRunDirectories,
  openDevDirectory,
  removeOwnDevJson,
  writeDevJson,
} from "./dev-directory.ts";
import { stopAllGuarded } from "./guard.ts";
import { startNeonProxy } from "./neon-proxy.ts";
import { runOwnMigrations } from "./own-migrations.ts";
import { firstFreePort, isFree } from "./ports.ts";
import type { PostgresServer } from "./postgres.ts";
import { openProject } from "./project.ts";
import type { StackOptions } from "./stack-options.ts";
import { startTicker } from "./ticker.ts";
import { exampleType, howToUse } from "./welcome.ts";
import { startWorker } from "./worker-process.ts";

const defaultPort = 8787;
const stopWithinMs = 9_000;

const closers: (() => unknown)[] = [];
let removeOwnDirectories = () => {};
let stopping = false;

/** Brings the schema of a database up to date. `directory` has its data. */
export type Migrate = (databaseUrl: string, directory: string) => Promise<void>;

/** Runs until a signal, or until a part has ended. Then it ends the process. */
export function runStack(options: StackOptions, migrate: Migrate): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => void stop(0));
  start(options, migrate).catch((error: Error) => fail(error.message));
}

async function start(options: StackOptions, migrate: Migrate): Promise<void> {
  const begunAt = Date.now();
  const root = process.cwd();
  const named = options.demo ? undefined : openProject(root, options.config);
  const port = await choosePort(options.port);
  const directory = openDevDirectory(root);
  const own = makeRunDirectories(directory);
  removeOwnDirectories = own.remove;
  const project = named ?? openProject(root, writeDemoConfig(own.run));
  const { config, crons } = project;

  const data = {
    lasting: join(directory, "postgres"),
    portFile: join(directory, "postgres-port"),
    fresh: own.data,
    ephemeral: options.ephemeral,
  };
  const postgres = await step("Postgres", () => openPostgres({ ...data, root, log }));
  watchPart("Postgres", postgres);
  const databaseUrl = postgres.url(databaseName);
  await step("migrations", () => migrateAll(postgres, migrate));

  const { hyperdriveUrl, ...reach } = await openWay(options.transport ?? project.transport, postgres);
  const bindings = {
    SLUICE_ADMIN_KEY: process.env.SLUICE_ADMIN_KEY ?? keptAdminKey(directory),
    SLUICE_ALLOW_PRIVATE_TARGETS: "true",
    ...(options.demo ? demoSettings : { SLUICE_LOG_JOBS: "true" }),
    ...withoutDatabase(project.variables),
    ...ownSettings(),
    ...reach,
  };
  const hyperdrive = hyperdriveUrl && { HYPERDRIVE: { connectionString: hyperdriveUrl } };
  await parseSettings({ ...bindings, ...hyperdrive }); // so that invalid settings fail the start, and not the first request
  const { migrate: command } = options;
  const env = { ...bindings, DATABASE_URL: databaseUrl };
  if (command) await step("your own", () => runOwnMigrations({ command, root, env, log }));
  const stateDirectory = join(postgres.directory === own.data ? own.run : directory, "worker-state");
  const { wranglerArguments } = options;
  const worker = await step("Worker", () =>
    startWorker({
      ...{ root, config, port, wranglerArguments, bindings, hyperdriveUrl },
      ...{ runDirectory: own.run, stateDirectory, log },
    }),
  );
  watchPart("the Worker's process", worker);

  const ticker = startTicker({ url: worker.url, crons, tickSeconds: options.tickSeconds, log });
  closers.push(ticker.stop);

  const adminKey = bindings.SLUICE_ADMIN_KEY;
  const schema = process.env.SLUICE_SCHEMA ?? defaultSchema;
  const filled = { url: worker.url, adminKey, databaseUrl, schema };
  if (options.demo) closers.push((await step("demo", () => startDemo(filled))).stop);
  const neonEndpoint = reach.SLUICE_NEON_ENDPOINT;
  const type = await exampleType(worker.url, adminKey);
  const seconds = secondsSince(begunAt);
  log(howToUse({ url: worker.url, databaseUrl, neonEndpoint, adminKey, type, seconds }));
  closers.push(() => removeOwnDevJson(directory));
  writeDevJson(directory, {
    url: worker.url,
    database_url: databaseUrl,
    ...(neonEndpoint && { neon_endpoint: neonEndpoint }),
    admin_key: adminKey,
    pid: process.pid,
  });
}

async function migrateAll(postgres: PostgresServer, migrate: Migrate): Promise<void> {
  await makeDatabase(postgres);
  await migrate(postgres.url(databaseName), postgres.directory);
}

interface Way {
  /** The Worker's variables. */
  DATABASE_URL?: string;
  SLUICE_NEON_ENDPOINT?: string;
  hyperdriveUrl: string | undefined;
}

/** What the Worker needs to reach Postgres. */
async function openWay(transport: "neon" | "pg", postgres: PostgresServer): Promise<Way> {
  const databaseUrl = postgres.url(databaseName);
  if (transport === "pg") return { hyperdriveUrl: databaseUrl };
  const proxy = await startNeonProxy({ postgresPort: postgres.port });
  closers.push(() => proxy.close());
  return { DATABASE_URL: databaseUrl, SLUICE_NEON_ENDPOINT: proxy.endpoint, hyperdriveUrl: undefined };
}

async function choosePort(wanted: number | undefined): Promise<number> {
  if (wanted === undefined) {
    const port = await firstFreePort(defaultPort);
    if (port !== defaultPort) log(`port ${defaultPort} is in use, using ${port}`);
    return port;
  }
  if (!(await isFree(wanted))) throw new Error(`port ${wanted} is in use; choose another with --port`);
  return wanted;
}

/** The Worker must not reach the database that the user has there. */
function withoutDatabase({ DATABASE_URL: _, ...variables }: Record<string, string>): Record<string, string> {
  return variables;
}

/** Every SLUICE_… variable of the environment goes to the Worker. */
function ownSettings(): Record<string, string> {
  const isOurs = ([name, value]: [string, string | undefined]) =>
    name.startsWith("SLUICE_") && value !== undefined;
  return Object.fromEntries(Object.entries(process.env).filter(isOurs)) as Record<string, string>;
}

/** Runs one part of the start, and ends the start if a stop was requested meanwhile. */
async function step<T>(name: string, run: () => Promise<T>): Promise<T> {
  const begunAt = Date.now();
  const result = await run();
  if (stopping) throw new Error("stopped");
  log(`${name.padEnd(12)} ready after ${secondsSince(begunAt)} s`);
  return result;
}

function watchPart(name: string, part: { exited: Promise<string>; stop(): Promise<void> }): void {
  closers.push(() => part.stop());
  part.exited.then((reason) => fail(`${name} ${reason}`));
}

function fail(message: string): void {
  if (stopping) return;
  console.error(`sluice: ${message}`);
  void stop(1);
}

async function stop(exitCode: number): Promise<void> {
  if (stopping) return;
  stopping = true;
  setTimeout(() => process.exit(exitCode), stopWithinMs).unref();
  for (const close of closers.reverse()) await close();
  await stopAllGuarded();
  removeOwnDirectories();
  process.exit(exitCode);
}

function secondsSince(begunAt: number): string {
  return ((Date.now() - begunAt) / 1000).toFixed(1);
}

function log(line: string): void {
  if (!stopping) console.log(line);
}
