// sluice dev: the local stack for the Worker of the current folder. In this repository it is `npm run dev`.
import { defaultSchema } from "../../core/schema-name.ts";
import { maxTickSeconds, type StackOptions } from "../../local/stack-options.ts";
import type { CommandContext } from "../command.ts";
import type { Commands } from "../command-table.ts";
import { usageError } from "../exit.ts";
import { migrate } from "../migrate.ts";
import { ChangedFileError } from "../migration-state.ts";

export const commands: Commands = {
  "": {
    summary: "Start Postgres, the Worker of this folder and its crons on this machine",
    details: `Migrates the database, and starts a Neon-compatible proxy and \`wrangler dev\`. With --transport pg the Worker has a local
Hyperdrive binding, and there is no proxy. The data stays in .sluice from run to run. The Worker gets the variables of
.dev.vars, and every SLUICE_… variable of the environment. DEV_DIRECTORY names another directory than .sluice.`,
    flags: [
      { name: "port", kind: "number", help: "the Worker's port; default 8787, or the next free one" },
      { name: "ephemeral", kind: "boolean", help: "use a fresh database, and remove it at the end" },
      {
        name: "demo",
        kind: "boolean",
        help: "show the dashboard with a Worker and a filled queue of its own, in a fresh database",
      },
      {
        name: "tick-seconds",
        kind: "number",
        help: "between two runs of the crons; default 60, with --demo 10; 0: never",
      },
      {
        name: "transport",
        kind: "text",
        choices: ["neon", "pg"],
        help: "how the Worker reaches Postgres; default: pg if wrangler's settings have the binding HYPERDRIVE",
      },
      { name: "migrate", kind: "text", help: "a command with your own migrations; it gets DATABASE_URL" },
      { name: "config", kind: "text", help: "wrangler's settings; default wrangler.json, .jsonc or .toml" },
      { name: "wrangler", kind: "list", help: "an argument for wrangler dev: --wrangler=--env=staging" },
    ],
    examples: [
      "dev",
      "dev --demo",
      "dev --ephemeral --tick-seconds 5",
      "dev --migrate 'npx drizzle-kit migrate'",
    ],
    needsApi: false,
    async run({ values }) {
      const { runStack } = await import("../../local/stack.ts");
      runStack(toOptions(values), migrateLocal);
    },
  },
};

function toOptions(values: CommandContext["values"]): StackOptions {
  const { port, ephemeral, demo, transport, config, wrangler } = values;
  const tickSeconds = Number(values["tick-seconds"] ?? (demo ? 10 : 60));
  if (demo && config !== undefined) throw usageError("--demo has a Worker of its own: leave out --config");
  if (port !== undefined && !(Number.isInteger(port) && Number(port) >= 1 && Number(port) <= 65_535))
    throw usageError(`--port takes a number from 1 to 65535, not ${port}`);
  if (!(tickSeconds >= 0 && tickSeconds <= maxTickSeconds))
    throw usageError(`--tick-seconds takes a number from 0 to ${maxTickSeconds}, not ${tickSeconds}`);
  return {
    port: port as number | undefined,
    ephemeral: ephemeral === true || demo === true,
    demo: demo === true,
    tickSeconds,
    transport: transport as StackOptions["transport"],
    migrate: values.migrate as string | undefined,
    config: config as string | undefined,
    wranglerArguments: (wrangler as string[] | undefined) ?? [],
  };
}

async function migrateLocal(databaseUrl: string, directory: string): Promise<void> {
  const schema = process.env.SLUICE_SCHEMA ?? defaultSchema;
  await migrate({ databaseUrl, schema }).catch((error: Error) => {
    throw error instanceof ChangedFileError ? new Error(explainOldSchema(error, directory)) : error;
  });
}

/** Before the first release 0001_tables.sql is edited in place. The user decides what to remove, as the jobs may matter. */
function explainOldSchema({ message }: Error, directory: string): string {
  const { npm_lifecycle_event: script } = process.env;
  const command = script && script !== "npx" ? `npm run ${script} --` : "npx sluice dev";
  return `${message}

An older version made your local database. Run one of these:
  rm -rf '${directory}'   deletes it; the next start makes a new one
  ${command} --ephemeral     keeps it and uses a fresh one for this run`;
}
