// `npm run bench`: measures Sluice and its peers in one run. It starts what it needs and stops it at the end, also after
// Ctrl-C.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { stopAllGuarded } from "../../src/local/guard.ts";
import { systems, workloads } from "./choices.ts";
import { type Flags, parseFlags, usage } from "./flags.ts";
import { installPeers } from "./peers.ts";
import { summarize } from "./report/summary.ts";
import { table } from "./report/table.ts";
import { writeResults } from "./report/write.ts";
import { type Results, runBench } from "./run.ts";
import { openStage, type Stage } from "./stage.ts";
import type { System } from "./systems/system.ts";

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
  chmodSync(directory, 0o755); // root runs Postgres as nobody, who has to get in
  process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
  let isStopping = false;
  const log = (line: string) => {
    if (!isStopping) console.log(line);
  };
  let stage: Stage | undefined;
  const stop = async (exitCode: number) => {
    if (isStopping) return;
    isStopping = true;
    await stage?.close();
    await stopAllGuarded(); // a PostgreSQL that was just starting
    process.exit(exitCode);
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => void stop(130));
  try {
    if (flags.systems.some((name) => name !== "sluice")) installPeers(log);
    log("starting PostgreSQL, with fsync and synchronous_commit on");
    stage = await openStage(directory);
    const results = await runBench({
      stage,
      systems: await chosenSystems(flags),
      workloads: workloads.filter(({ name }) => flags.workloads.includes(name)),
      size: flags.size,
      log,
    });
    // An interrupted run has no valid results.
    if (!isStopping) report(flags, results);
    await stop(results.failures.length > 0 ? 1 : 0);
  } catch (error) {
    if (!isStopping) console.error((error as Error).message);
    await stop(1);
  }
}

async function chosenSystems({ systems: names, beside }: Flags): Promise<System[]> {
  const chosen = Object.entries(systems).flatMap(([name, make]) => (names.includes(name) ? [make()] : []));
  return beside === undefined ? chosen : [...chosen, await loadBefore(beside)];
}

/** Another checkout answers by its own adapter, so its statements may differ from this one's. */
async function loadBefore(checkout: string): Promise<System> {
  const { sluice } = await import(resolve(checkout, "test/bench/systems/sluice.ts"));
  return { ...sluice, name: "before" };
}

function report({ size, out }: Flags, results: Results): void {
  console.log(`\n${table(results, summarize(results))}\n`);
  if (size === "quick") console.log("a quick run is rough: the bars are those of a full one");
  for (const { workload, message } of results.failures) console.log(`${workload} FAILED: ${message}`);
  writeResults(out, results);
  console.log(`written to ${out}`);
}
