// `npm run simulate`: runs the simulation on a Postgres of its own, prints the results and draws who owned what. It stops what
// it started, also after Ctrl-C.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import pg from "pg";
import { migrate } from "../../src/cli/migrate.ts";
import { stopAllGuarded } from "../../src/local/guard.ts";
import { startPostgres } from "../../src/local/postgres.ts";
import { createPgDatabase } from "../support/pg-database.ts";
import { type Flags, parseFlags, usage } from "./flags.ts";
import { report } from "./report.ts";
import { ringChart } from "./ring-chart.ts";
import { type Simulation, simulate } from "./simulate.ts";

const flags = parseFlags(process.argv.slice(2));
if (typeof flags === "string") {
  console.error(`${flags}\n\n${usage}`);
  process.exitCode = 2;
} else if (flags.help) {
  console.log(usage);
} else {
  await main(flags);
}

async function main(flags: Flags): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "sluice-simulate-"));
  chmodSync(directory, 0o755); // root runs Postgres as nobody, who has to get in
  process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
  let isStopping = false;
  const stop = async (exitCode: number) => {
    if (isStopping) return;
    isStopping = true;
    await stopAllGuarded();
    process.exit(exitCode);
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => void stop(130));
  try {
    const { violations } = await run(flags, directory);
    await stop(violations.length > 0 ? 1 : 0);
  } catch (error) {
    if (!isStopping) console.error(error);
    await stop(1);
  }
}

async function run(flags: Flags, directory: string): Promise<Simulation> {
  console.log(`${flags.workers} workers, ${flags.jobs} jobs, about ${flags.seconds} s`);
  const settings = { max_connections: "100" };
  const postgres = await startPostgres({ directory: join(directory, "postgres"), ephemeral: true, settings });
  const databaseUrl = postgres.url("postgres");
  await migrate({ databaseUrl });
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 80 });
  pool.on("error", () => {}); // the server is stopped before its connections are closed
  const simulation = await simulate(pool, createPgDatabase(pool), flags);
  console.log(report(simulation));
  mkdirSync(dirname(flags.out), { recursive: true });
  writeFileSync(flags.out, ringChart(simulation));
  console.log(`drawn in ${flags.out}`);
  return simulation;
}
