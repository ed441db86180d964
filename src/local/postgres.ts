// A real PostgreSQL on the loopback address, for `npm run dev` and for the tests. It makes the cluster if there is none,
// starts the server and stops it. It trusts every local connection, so it is for development only.
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { type Guarded, spawnGuarded } from "./guard.ts";
import { freePort } from "./ports.ts";
import { postgresBinaries } from "./postgres-binaries.ts";
import { makeCluster, removePidFile, serverState } from "./postgres-cluster.ts";
import { postgresOwner, reachableDirectory, removeDirectory } from "./postgres-owner.ts";

export interface PostgresOptions {
  directory: string;
  port?: number;
  /** stop() removes the data, and the server does not wait for the disk. */
  ephemeral?: boolean;
  settings?: Record<string, string>;
  /** The directory of another version's programs. The default is the npm package. */
  bin?: string;
  /** Environment variables for the server, in addition to its own. */
  env?: Record<string, string>;
  log?: (line: string) => void;
}

export interface PostgresServer {
  port: number;
  /** Where the data is. It may differ from the directory in the options (see postgres-owner.ts). */
  directory: string;
  url(database: string): string;
  /** Resolves to a text that says why the server ended. */
  exited: Promise<string>;
  stop(): Promise<void>;
}

export class DirectoryInUse extends Error {}

const readyWithinMs = 30_000;
const pollMs = 10;
const portTries = 3;
const keptLines = 20;
const ephemeralSettings = { fsync: "off", full_page_writes: "off", synchronous_commit: "off" };

export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const { ephemeral = false } = options;
  const owner = postgresOwner();
  const directory = reachableDirectory(options.directory, owner);
  if (directory !== options.directory) {
    options.log?.(`Postgres runs as the user nobody, who cannot read ${options.directory}`);
    options.log?.(`its data is in ${directory} instead`);
  }
  const bin = options.bin ?? postgresBinaries(owner);
  await makeCluster({ bin, directory, owner });
  for (let tries = 1; ; tries++) {
    const port = options.port ?? (await freePort());
    await refuseUsedDirectory(directory);
    const settings = { ...(ephemeral ? ephemeralSettings : {}), ...options.settings };
    const args = serverArguments(directory, port, settings);
    const server = spawnGuarded(`${bin}/postgres`, args, {
      cwd: directory,
      env: { PATH: process.env.PATH ?? "", LC_ALL: "C", TZ: "UTC", ...options.env },
      stopSignals: ["INT", "QUIT"],
      owner,
    });
    const lines = lastLines(server.stdout, server.stderr);
    const failure = await untilReady(server, directory, port);
    if (failure === undefined) return handle({ server, directory, port, lines, ephemeral });
    const output = lines.join("\n");
    if (/lock file .* already exists|shared memory block/.test(output))
      throw new DirectoryInUse(`another Postgres is using ${directory}`);
    const retry = options.port === undefined && tries < portTries;
    if (!(retry && output.includes("Address already in use")))
      throw new Error(`Postgres did not start: ${failure}\n${output}`);
  }
}

function handle(started: {
  server: Guarded;
  directory: string;
  port: number;
  lines: string[];
  ephemeral: boolean;
}): PostgresServer {
  const { server, directory, port, lines } = started;
  return {
    port,
    directory,
    url: (database) => `postgresql://sluice:sluice@127.0.0.1:${port}/${database}`,
    exited: server.exited.then((reason) => [reason, ...lines.slice(-3)].join("\n")),
    async stop() {
      await server.stop();
      if (started.ephemeral) removeDirectory(directory);
    },
  };
}

function serverArguments(directory: string, port: number, settings: Record<string, string>) {
  const all = {
    listen_addresses: "127.0.0.1",
    port: String(port),
    // No socket: its path may have about 100 characters only, and nobody needs it.
    unix_socket_directories: "",
    ...settings,
  };
  return ["-D", directory, ...Object.entries(all).flatMap(([k, v]) => ["-c", `${k}=${v}`])];
}

/**
 * Waits for a server that is stopping, because its owner was killed a moment ago. Removes the pid file of a dead server:
 * it still says "ready", and Postgres would refuse to start if its pid belongs to another process by now.
 */
async function refuseUsedDirectory(directory: string): Promise<void> {
  const giveUpAt = Date.now() + 5_000;
  let state = serverState(directory);
  while (state?.isLive && state.status === "stopping" && Date.now() < giveUpAt) {
    await sleep(pollMs);
    state = serverState(directory);
  }
  if (state?.isLive) throw new DirectoryInUse(`another Postgres is using ${directory}`);
  if (state) removePidFile(directory);
}

/** Returns undefined when the server is ready, or why it is not. The port shows that the pid file is this server's. */
async function untilReady(server: Guarded, directory: string, port: number) {
  let ended: string | undefined;
  server.exited.then((reason) => {
    ended = reason;
  });
  const giveUpAt = Date.now() + readyWithinMs;
  while (ended === undefined && Date.now() < giveUpAt) {
    const state = serverState(directory);
    if (state?.status === "ready" && state.port === port) return undefined;
    await sleep(pollMs);
  }
  await server.stop();
  return ended ?? `not ready after ${readyWithinMs / 1000} s`;
}

function lastLines(...streams: Readable[]): string[] {
  const lines: string[] = [];
  for (const stream of streams) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      lines.push(...text.split("\n").filter(Boolean));
      lines.splice(0, lines.length - keptLines);
    });
  }
  return lines;
}
