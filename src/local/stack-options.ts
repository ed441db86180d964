// The options of the local stack: the flags of `sluice dev`.

export interface StackOptions {
  /** Undefined means 8787, or the next free port. */
  port: number | undefined;
  ephemeral: boolean;
  /** A Worker and a queue to look at, in place of the folder's own. */
  demo: boolean;
  /** Between two runs of the crons. 0: never. */
  tickSeconds: number;
  /**
   * How the Worker reaches Postgres: over Neon's HTTP, or with `pg` through a local Hyperdrive binding. Undefined: by the
   * binding if wrangler's settings have it.
   */
  transport: "neon" | "pg" | undefined;
  /** The user's own migrations: a command for the shell. */
  migrate: string | undefined;
  /** The file with wrangler's settings. Undefined means wrangler.json, .jsonc or .toml. */
  config: string | undefined;
  /** More arguments of `wrangler dev`. */
  wranglerArguments: string[];
}

export const maxTickSeconds = 86_400;
