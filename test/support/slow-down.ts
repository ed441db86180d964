// How many times longer than its CPU time a computation takes, because other programs use the machine too. A test that bounds
// a wait multiplies the bound by it, and so notices the wait and not the busy machine.
import { setTimeout as sleep } from "node:timers/promises";
import { parentPort, Worker, workerData } from "node:worker_threads";

const cpuMsPerRound = 20;
const pauseMs = 40;
const isWorker = workerData === "slow-down";

/** Measures until it is stopped, in a thread of its own. On a quiet machine the answer is 1. */
export function measureSlowDown(): { stop(): Promise<number> } {
  const worker = new Worker(new URL(import.meta.url), { workerData: "slow-down" });
  return {
    stop: () =>
      new Promise((resolve, reject) => {
        worker.once("message", resolve).once("error", reject).postMessage("stop");
      }),
  };
}

async function measure(): Promise<number> {
  let isAsked = true;
  parentPort?.once("message", () => {
    isAsked = false;
  });
  let [wallMs, cpuMs] = [0, 0];
  while (isAsked) {
    const beganMs = performance.now();
    const before = threadCpuMs();
    while (threadCpuMs() - before < cpuMsPerRound);
    wallMs += performance.now() - beganMs;
    cpuMs += threadCpuMs() - before;
    await sleep(pauseMs);
  }
  return Math.max(1, wallMs / cpuMs);
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

if (isWorker) parentPort?.postMessage(await measure());
