// `npm run bench`: Sluice and its peers in one run. Starts what it needs and takes it down again, Ctrl-C included.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stopAllGuarded } from "../../infra/local/guard.ts";
import { systems, workloads } from "./choices.ts";
import { type Flags, parseFlags, usage } from "./flags.ts";
import { installPeers } from "./peers.ts";
import { summarize } from "./report/summary.ts";
import { table } from "./report/table.ts";
import { writeResults } from "./report/write.ts";
import { runBench } from "./run.ts";
import { openStage } from "./stage.ts";

const choices = { workloads, systems: Object.keys(systems) };
const flags = parseFlags(process.argv.slice(2), choices);
if (typeof flags === "string") {
  console.error(`${flags}\n\n${usage(choices)}`);
  process.exitCode = 2;
} else if (flags.help) {
  console.log(usage(choices));
} else {
  await bench(flags);
}

async function bench(flags: Flags): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  let isStopping = false;
  const log = (line: string) => {
    if (!isStopping) console.log(line);
  };
  const stop = async (exitCode: number) => {
    if (isStopping) return;
    isStopping = true;
    await stopAllGuarded();
    rmSync(directory, { recursive: true, force: true });
    process.exit(exitCode);
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => void stop(130));
  try {
    const failures = await measure(flags, directory, log);
    await stop(failures.length > 0 ? 1 : 0);
  } catch (error) {
    if (!isStopping) console.error((error as Error).message);
    await stop(1);
  }
}

async function measure(flags: Flags, directory: string, log: (line: string) => void) {
  if (flags.systems.some((name) => name !== "sluice")) installPeers(log);
  log("starting PostgreSQL, with fsync and synchronous_commit on");
  const results = await runBench({
    stage: await openStage(directory),
    systems: Object.entries(systems).flatMap(([name, make]) =>
      flags.systems.includes(name) ? [make()] : [],
    ),
    workloads: workloads.filter(({ name }) => flags.workloads.includes(name)),
    size: flags.size,
    log,
  });
  log(`\n${table(results, summarize(results))}\n`);
  writeResults(flags.out, results);
  log(`written to ${flags.out}`);
  for (const { workload, message } of results.failures) log(`${workload} failed: ${message}`);
  return results.failures;
}
