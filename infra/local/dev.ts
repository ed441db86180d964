// `npm run dev`: everything Sluice needs, on this machine. It starts the parts in order and stops them in reverse order.
// When one part ends, it stops the others too.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSettings } from "../../src/edge/settings/env.ts";
import { readCrons } from "./crons.ts";
import { databaseName, migrateDatabase, openPostgres } from "./dev-database.ts";
import {
  checkout,
  keptAdminKey,
  makeRunDirectories,
  openDevDirectory,
  removeOwnDevJson,
  writeDevJson,
} from "./dev-directory.ts";
import { type Flags, parseFlags, usage } from "./flags.ts";
import { stopAllGuarded } from "./guard.ts";
import { startNeonProxy } from "./neon-proxy.ts";
import { firstFreePort, isFree } from "./ports.ts";
import type { PostgresServer } from "./postgres.ts";
import { startTicker } from "./ticker.ts";
import { howToUse } from "./welcome.ts";
import { startWorker } from "./worker-process.ts";

const defaultPort = 8787;
const stopWithinMs = 9_000;

const closers: (() => unknown)[] = [];
let removeOwnDirectories = () => {};
let stopping = false;

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => void stop(0));

const flags = parseFlags(process.argv.slice(2));
if (typeof flags === "string") {
  console.error(`${flags}\n\n${usage}`);
  process.exitCode = 2;
} else if (flags.help) {
  console.log(usage);
} else {
  start(flags).catch((error: Error) => fail(error.message));
}

async function start(flags: Flags): Promise<void> {
  const begunAt = Date.now();
  const port = await choosePort(flags.port);
  const directory = openDevDirectory();
  const own = makeRunDirectories(directory);
  removeOwnDirectories = own.remove;

  const data = {
    lasting: join(directory, "postgres"),
    portFile: join(directory, "postgres-port"),
    fresh: own.data,
    ephemeral: flags.ephemeral,
  };
  const postgres = await step("Postgres", () => openPostgres({ ...data, log }));
  watchPart("Postgres", postgres);
  const databaseUrl = postgres.url(databaseName);
  await step("migrations", () => migrateDatabase(postgres));

  const { hyperdriveUrl, ...reach } = await openWay(flags.transport, postgres);
  const bindings = {
    ...reach,
    SLUICE_ADMIN_KEY: process.env.SLUICE_ADMIN_KEY ?? keptAdminKey(directory),
    SLUICE_ALLOW_PRIVATE_TARGETS: "true",
    SLUICE_LOG_JOBS: "true",
    ...ownSettings(),
  };
  const hyperdrive = hyperdriveUrl && { HYPERDRIVE: { connectionString: hyperdriveUrl } };
  await parseSettings({ ...bindings, ...hyperdrive }); // so that invalid settings fail the start, and not the first request
  const stateDirectory = join(postgres.directory === own.data ? own.run : directory, "worker-state");
  const worker = await step("Worker", () =>
    startWorker({ port, bindings, hyperdriveUrl, runDirectory: own.run, stateDirectory, log }),
  );
  watchPart("the Worker's process", worker);

  const crons = readCrons(readFileSync(join(checkout, "wrangler.toml"), "utf8"));
  const ticker = startTicker({ url: worker.url, crons, tickSeconds: flags.tickSeconds, log });
  closers.push(ticker.stop);

  const adminKey = bindings.SLUICE_ADMIN_KEY;
  const neonEndpoint = reach.SLUICE_NEON_ENDPOINT;
  log(howToUse({ url: worker.url, databaseUrl, neonEndpoint, adminKey, seconds: secondsSince(begunAt) }));
  closers.push(() => removeOwnDevJson(directory));
  writeDevJson(directory, {
    url: worker.url,
    database_url: databaseUrl,
    ...(neonEndpoint && { neon_endpoint: neonEndpoint }),
    admin_key: adminKey,
    pid: process.pid,
  });
}

interface Way {
  /** The Worker's variables. */
  DATABASE_URL?: string;
  SLUICE_NEON_ENDPOINT?: string;
  hyperdriveUrl: string | undefined;
}

/** What the Worker needs to reach Postgres. */
async function openWay(transport: Flags["transport"], postgres: PostgresServer): Promise<Way> {
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
