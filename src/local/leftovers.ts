// Removes the directories that killed runs left behind. Their names end in the pid of the process that made them.
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

export function removeLeftovers(parent: string, prefix: string): void {
  for (const name of readdirSync(parent)) {
    const pid = Number(/-(\d+)$/.exec(name)?.[1]);
    if (!name.startsWith(prefix) || !pid || isRunning(pid)) continue;
    rmSync(join(parent, name), { recursive: true, force: true });
  }
}

export function isRunning(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
