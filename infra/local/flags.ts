// The flags of `npm run dev`.
import { parseArgs } from "node:util";

export interface Flags {
  /** Undefined means 8787, or the next free port. */
  port: number | undefined;
  ephemeral: boolean;
  tickSeconds: number;
  /** How the Worker reaches Postgres: over Neon's HTTP, or with `pg` through a local Hyperdrive binding. */
  transport: "neon" | "pg";
  help: boolean;
}

export const usage = `usage: npm run dev -- [flags]

Starts Postgres, migrates it, and starts a Neon-compatible proxy and the Worker. Fires the Worker's crons.
With --transport pg the Worker has a Hyperdrive binding, and there is no proxy.

  --port N           the Worker's port (default 8787, or the next free one)
  --ephemeral        use a fresh database, and remove it at the end
  --tick-seconds N   seconds between two runs of the crons (default 60; 0: never)
  --transport T      neon (default) or pg: how the Worker reaches Postgres
  --help             print this text

The Worker gets every SLUICE_… variable of the environment.
DEV_DIRECTORY is the directory for data and state (default .sluice).`;

const maxTickSeconds = 86_400;

/** Returns the flags, or a text that says what is wrong with them. */
export function parseFlags(args: string[]): Flags | string {
  let values: ReturnType<typeof parse>;
  try {
    values = parse(args);
  } catch (error) {
    return (error as Error).message;
  }
  const port = values.port === undefined ? undefined : Number(values.port);
  if (port !== undefined && !(/^\d+$/.test(values.port ?? "") && port >= 1 && port <= 65_535))
    return `--port takes a number from 1 to 65535, not "${values.port}"`;
  const tick = values["tick-seconds"];
  const tickSeconds = Number(tick);
  if (!/^\d+(\.\d+)?$/.test(tick) || tickSeconds > maxTickSeconds)
    return `--tick-seconds takes a number from 0 to ${maxTickSeconds}, not "${tick}"`;
  const { transport } = values;
  if (transport !== "neon" && transport !== "pg") return `--transport takes neon or pg, not "${transport}"`;
  return { port, tickSeconds, transport, ephemeral: values.ephemeral, help: values.help };
}

function parse(args: string[]) {
  return parseArgs({
    args,
    options: {
      port: { type: "string" },
      ephemeral: { type: "boolean", default: false },
      "tick-seconds": { type: "string", default: "60" },
      transport: { type: "string", default: "neon" },
      help: { type: "boolean", short: "h", default: false },
    },
  }).values;
}
