// The flags of `sluice dev`, which is `npm run dev` in this repository.
import { parseArgs } from "node:util";

export interface Flags {
  /** Undefined means 8787, or the next free port. */
  port: number | undefined;
  ephemeral: boolean;
  tickSeconds: number;
  /** The user's own migrations: a command for the shell. */
  migrate: string | undefined;
  /** The file with wrangler's settings. Undefined means wrangler.json, .jsonc or .toml. */
  config: string | undefined;
  /**
   * How the Worker reaches Postgres: over Neon's HTTP, or with `pg` through a local Hyperdrive binding. Undefined: by the
   * binding if wrangler's settings have it.
   */
  transport: "neon" | "pg" | undefined;
  /** What stands behind `--`. */
  wranglerArguments: string[];
  help: boolean;
}

export const usage = `usage: sluice dev [flags] [-- arguments of wrangler dev]

Starts Postgres, migrates it, and starts a Neon-compatible proxy and the Worker of this folder. Fires the Worker's crons.
With --transport pg the Worker has a Hyperdrive binding, and there is no proxy.

  --port N           the Worker's port (default 8787, or the next free one)
  --ephemeral        use a fresh database, and remove it at the end
  --tick-seconds N   seconds between two runs of the crons (default 60; 0: never)
  --migrate COMMAND  your own migrations, run after Sluice's with DATABASE_URL set: --migrate "npm run db:migrate"
  --config FILE      wrangler's settings (default: wrangler.json, wrangler.jsonc or wrangler.toml)
  --transport T      neon or pg: how the Worker reaches Postgres (default: pg if the settings have the binding HYPERDRIVE)
  --help             print this text

The Worker gets the variables of .dev.vars, and every SLUICE_… variable of the environment.
DEV_DIRECTORY is the directory for data and state (default .sluice).`;

const maxTickSeconds = 86_400;

/** Returns the flags, or a text that says what is wrong with them. */
export function parseFlags(args: string[]): Flags | string {
  const end = args.indexOf("--");
  const wranglerArguments = end === -1 ? [] : args.slice(end + 1);
  let values: ReturnType<typeof parse>;
  try {
    values = parse(end === -1 ? args : args.slice(0, end));
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
  const { transport, ephemeral, help, migrate, config } = values;
  if (transport !== undefined && transport !== "neon" && transport !== "pg")
    return `--transport takes neon or pg, not "${transport}"`;
  return { port, tickSeconds, transport, ephemeral, help, migrate, config, wranglerArguments };
}

function parse(args: string[]) {
  return parseArgs({
    args,
    options: {
      port: { type: "string" },
      ephemeral: { type: "boolean", default: false },
      "tick-seconds": { type: "string", default: "60" },
      migrate: { type: "string" },
      config: { type: "string" },
      transport: { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  }).values;
}
