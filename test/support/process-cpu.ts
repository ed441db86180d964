// What processes have used of the CPU, as Linux counts it in ticks of a hundredth of a second.
import { readdirSync, readFileSync } from "node:fs";

const ticksPerSecond = 100;

/** Its own use. */
export function cpuSecondsOf(pid: number): number {
  const { own } = ticksOf(pid);
  return own / ticksPerSecond;
}

/** With its children: those that are running, and those that have ended. */
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

/** Fields 14 to 17; a name with spaces stands before them. A process that has just ended has used nothing more. */
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
