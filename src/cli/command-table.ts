// Every command by its name. A command's code is loaded only when it is called, so that `sluice --help` starts fast.
import type { Command } from "./command.ts";

/** A command with subcommands has one entry for each. One without has the entry "". */
export type Commands = Readonly<Record<string, Command>>;

export interface TableEntry {
  summary: string;
  load(): Promise<{ commands: Commands }>;
}

export const commandTable = {
  init: { summary: "Make a Worker with Sluice of this folder", load: () => import("./commands/init.ts") },
  dev: {
    summary: "Start Postgres, the Worker of this folder and its crons on this machine",
    load: () => import("./commands/dev.ts"),
  },
  status: {
    summary: "Show the state of all queues on one screen",
    load: () => import("./commands/status.ts"),
  },
  enqueue: { summary: "Enqueue a job", load: () => import("./commands/enqueue.ts") },
  jobs: {
    summary: "List, show, cancel, resolve jobs, or wait for one",
    load: () => import("./commands/jobs.ts"),
  },
  dead: { summary: "List, show, replay or discard dead letters", load: () => import("./commands/dead.ts") },
  queues: { summary: "List, pause or resume queues", load: () => import("./commands/queues.ts") },
  types: { summary: "List, pause or resume job types", load: () => import("./commands/types.ts") },
  schedules: {
    summary: "List, make, pause, resume, run or delete schedules",
    load: () => import("./commands/schedules.ts"),
  },
  flows: { summary: "List, show, cancel or delete flows", load: () => import("./commands/flows.ts") },
  signals: { summary: "Send a signal to jobs that wait for it", load: () => import("./commands/signals.ts") },
  keys: { summary: "List, create or revoke API keys", load: () => import("./commands/keys.ts") },
  alarms: { summary: "List, test or silence alarms", load: () => import("./commands/alarms.ts") },
  audit: { summary: "List what operators have done", load: () => import("./commands/audit.ts") },
  workers: { summary: "List the live workers", load: () => import("./commands/workers.ts") },
  rounds: { summary: "List rounds and why each ended", load: () => import("./commands/rounds.ts") },
  tail: { summary: "Show jobs as they end", load: () => import("./commands/tail.ts") },
  migrate: { summary: "Bring the database's schema up to date", load: () => import("./commands/migrate.ts") },
  doctor: { summary: "Check a deployment and its database", load: () => import("./commands/doctor.ts") },
  check: {
    summary: "Exit with 4 if there are dead letters or firing alarms",
    load: () => import("./commands/check.ts"),
  },
  completion: {
    summary: "Print the completion script of a shell",
    load: () => import("./commands/completion.ts"),
  },
} as const satisfies Record<string, TableEntry>;
