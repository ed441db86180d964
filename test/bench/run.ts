// Runs workloads over systems and collects their results. A workload that fails is reported, and the others still run.
import { cpus, release, totalmem, type } from "node:os";
import type { Stage } from "./stage.ts";
import type { System } from "./systems/system.ts";
import type { PinPoint, Sample, Size, Workload } from "./workloads/workload.ts";

export interface Results {
  date: string;
  size: Size;
  machine: { cpu: string; cores: number; memoryGb: number; system: string; node: string };
  postgres: { version: string; settings: Record<string, string> };
  systems: { name: string; version: string }[];
  samples: Sample[];
  pinPoints: PinPoint[];
  failures: { workload: string; message: string }[];
}

export async function runBench(options: {
  stage: Stage;
  systems: readonly System[];
  workloads: readonly Workload[];
  size: Size;
  log(line: string): void;
}): Promise<Results> {
  const { stage, systems, workloads, size, log } = options;
  const startedMs = performance.now();
  const progress = (line: string) => log(`${clock(performance.now() - startedMs)}  ${line}`);
  const results: Results = {
    date: new Date().toISOString(),
    size,
    machine: machine(),
    postgres: { version: await stage.serverVersion(), settings: stage.settings },
    systems: systems.map(({ name, version }) => ({ name, version })),
    samples: [],
    pinPoints: [],
    failures: [],
  };
  for (const system of systems) {
    await stage.install(system);
    progress(`installed ${system.name} ${system.version}`);
  }
  for (const workload of workloads) {
    progress(`${workload.name}: ${workload.about}`);
    try {
      await workload.run({
        systems,
        size,
        stage,
        progress,
        record: (sample) => void results.samples.push(sample),
        recordPoint: (point) => void results.pinPoints.push(point),
      });
    } catch (error) {
      const { message } = error as Error;
      progress(`${workload.name} FAILED: ${message}`);
      results.failures.push({ workload: workload.name, message });
    }
  }
  return results;
}

function machine(): Results["machine"] {
  const [cpu] = cpus();
  return {
    cpu: cpu?.model.trim() ?? "unknown",
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release().split("-")[0]}`,
    node: process.version,
  };
}

function clock(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
