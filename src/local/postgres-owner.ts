// Which user runs Postgres, and where that user can keep its files. Postgres refuses to run as root, so root starts it as
// `nobody`. That user cannot reach a checkout in a private directory such as /root.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

export interface Owner {
  uid: number;
  gid: number;
}

const openDirectoryPath = "/var/tmp/sluice";

/** Undefined means the current user. */
export function postgresOwner(): Owner | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const entry = /^nobody:[^:]*:(-?\d+):(-?\d+):/m.exec(readFileSync("/etc/passwd", "utf8"));
  if (!entry) throw new Error("Postgres cannot run as root, and this machine has no user `nobody`");
  return { uid: Number(entry[1]), gid: Number(entry[2]) };
}

/** Returns the directory, or a substitute if its owner cannot reach it. The substitute is the same in every run. */
export function reachableDirectory(directory: string, owner: Owner | undefined): string {
  const path = resolve(directory);
  const parent = dirname(path);
  mkdirSync(parent, { recursive: true });
  if (!owner || reaches(parent, owner)) return path;
  const hash = createHash("sha256").update(parent).digest("hex").slice(0, 12);
  const substitute = join(openDirectory(), hash);
  mkdirSync(substitute, { recursive: true, mode: 0o755 });
  return join(substitute, basename(path));
}

/** Checks the owner, because everybody may create this path in /var/tmp. */
export function openDirectory(): string {
  mkdirSync(openDirectoryPath, { recursive: true, mode: 0o755 });
  const found = lstatSync(openDirectoryPath);
  if (found.isDirectory() && found.uid === process.getuid?.()) return openDirectoryPath;
  throw new Error(`${openDirectoryPath} belongs to another user; remove it and start again`);
}

export function makePrivateDirectory(directory: string, owner: Owner | undefined): void {
  mkdirSync(directory, { mode: 0o700 });
  if (owner) chownSync(directory, owner.uid, owner.gid);
}

/** Also removes the parent of a substitute if it is empty. */
export function removeDirectory(directory: string): void {
  rmSync(directory, { recursive: true, force: true });
  const parent = dirname(directory);
  const isSubstitute = dirname(parent) === openDirectoryPath && existsSync(parent);
  if (isSubstitute && readdirSync(parent).length === 0) rmdirSync(parent);
}

function reaches(directory: string, owner: Owner): boolean {
  const options = { ...owner, cwd: "/", stdio: "ignore" } as const;
  return spawnSync("/bin/sh", ["-c", 'test -x "$0"', directory], options).status === 0;
}
