// `sluice dev`: the local stack for the Worker of the current folder. In this repository it is `npm run dev`.
import { defaultSchema } from "../../core/schema-name.ts";
import { parseFlags, usage } from "../../local/flags.ts";
import { runStack } from "../../local/stack.ts";
import { migrate } from "../migrate.ts";
import { ChangedFileError } from "../migration-state.ts";

export function dev(args: string[]): void {
  const flags = parseFlags(args);
  if (typeof flags === "string") {
    console.error(`${flags}\n\n${usage}`);
    process.exitCode = 2;
  } else if (flags.help) console.log(usage);
  else runStack(flags, migrateLocal);
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
