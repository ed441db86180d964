// Starts a process that cannot outlive this one, even if this one is killed with SIGKILL. A small `sh` between the two
// reads a pipe from this process: each line is a signal to forward, and the end of the pipe means "stop". Without it
// Postgres, wrangler and workerd would survive their parent.
import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";

export interface GuardOptions {
  cwd: string;
  env: Record<string, string>;
  /** Sent in this order, with pauses. SIGKILL follows after the last. */
  stopSignals: readonly [string, ...string[]];
  owner?: { uid: number; gid: number } | undefined;
}

export interface Guarded {
  stdout: Readable;
  stderr: Readable;
  /** Resolves to a text that says why the process ended. */
  exited: Promise<string>;
  stop(): Promise<void>;
}

/** Short enough that two signals and SIGKILL take less than the 10 s that stopping may take. */
const patienceMs = 3_000;
/** How long to wait for the last output, which says why the process ended and may arrive after its end. */
const lastWordsMs = 500;

const guardScript = `
stop=$1; shift
"$@" 3<&- & child=$!
exec >/dev/null 2>&1
{
  while read -r signal; do kill -s "$signal" "$child"; done
  kill -s "$stop" "$child"; sleep 8; kill -s KILL "$child"
} <&3 &
exec 3<&-
wait "$child"; code=$?
# Ends the rest of the group: the reader above, and processes that the child left behind.
trap '' TERM; kill -s TERM 0; wait
exit "$code"
`;

const live = new Set<Guarded>();

export function spawnGuarded(command: string, args: string[], options: GuardOptions): Guarded {
  const [firstSignal] = options.stopSignals;
  const child = spawn("/bin/sh", ["-c", guardScript, "guard", firstSignal, command, ...args], {
    cwd: options.cwd,
    env: options.env,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
    // Its own process group, so that Ctrl-C in the terminal reaches only this process, which then stops the rest in order.
    detached: true,
    ...options.owner,
  });
  const closed = new Promise<void>((resolve) => child.on("close", () => resolve()));
  const control = child.stdio[3] as Writable;
  // The guard may have ended before a signal is written to it.
  control.on("error", () => {});
  const exited = ended(child).then(async (reason) => {
    live.delete(guarded);
    control.destroy();
    killGroup(child.pid);
    await endsWithin(closed, lastWordsMs);
    return reason;
  });
  const stop = async () => {
    for (const signal of [...options.stopSignals, "KILL"]) {
      control.write(`${signal}\n`);
      if (await endsWithin(exited, patienceMs)) return;
    }
    killGroup(child.pid);
  };
  const guarded: Guarded = {
    stdout: child.stdout as Readable,
    stderr: child.stderr as Readable,
    exited,
    stop,
  };
  live.add(guarded);
  return guarded;
}

/** For a start that fails: stops the processes whose handle was not returned yet. */
export async function stopAllGuarded(): Promise<void> {
  await Promise.all([...live].map((guarded) => guarded.stop()));
}

function ended(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.on("error", (error) => resolve(error.message));
    child.on("exit", (code, signal) => resolve(reasonOf(code, signal)));
  });
}

/** A shell reports a child's end by signal n as code 128 + n. */
function reasonOf(code: number | null, signal: string | null): string {
  const number = (code ?? 0) - 128;
  const name = Object.entries(constants.signals).find(([, value]) => value === number)?.[0];
  if (signal || name) return `ended by ${signal ?? name}`;
  return `ended with code ${code}`;
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The group is empty.
  }
}

async function endsWithin(end: Promise<unknown>, milliseconds: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, milliseconds, false);
  });
  const result = await Promise.race([end.then(() => true), late]);
  clearTimeout(timer);
  return result;
}
