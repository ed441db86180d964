// The CPU time of processes. Linux counts it in ticks of 0.01 s, and for single threads in nanoseconds.
import { readdirSync, readFileSync } from "node:fs";

const ticksPerSecond = 100;

/** The CPU time of one process. */
export function cpuSecondsOf(pid: number): number {
  const { own } = ticksOf(pid);
  return own / ticksPerSecond;
}

/** The CPU time of a process with one thread, such as a session of Postgres. Exact enough for a single call. */
export function threadCpuMs(pid: number): number {
  return Number.parseInt(readFileSync(`/proc/${pid}/schedstat`, "utf8"), 10) / 1e6;
}

/** The CPU time of a process and its children, running or ended. */
export function familyCpuSecondsOf(pid: number): number {
  const { own, ended } = ticksOf(pid);
  return (
    (own + ended) / ticksPerSecond + childrenOf(pid).reduce((sum, child) => sum + cpuSecondsOf(child), 0)
  );
}

export function childrenOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number),
  );
}

/** Reads fields 14 to 17 after the name, which may contain spaces. Returns 0 for a process that has just ended. */
function ticksOf(pid: number): { own: number; ended: number } {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ")
      .map(Number);
    const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15);
    return { own: user + system, ended: endedUser + endedSystem };
  } catch {
    return { own: 0, ended: 0 };
  }
}
