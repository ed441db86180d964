// sluice migrate: brings the schema of a database up to date.
import { defaultSchema } from "../../core/schema-name.ts";
import type { CommandContext } from "../command.ts";
import type { Commands } from "../command-table.ts";
import { CommandError, exitCodes, usageError } from "../exit.ts";
import { dryRun, migrate, printScript } from "../migrate.ts";

export const commands: Commands = {
  "": {
    summary: "Bring the Sluice schema of the database at DATABASE_URL up to date",
    details: `It is safe to run it twice, or two at once. If your provider also gives you a pooled connection string, use the direct
one. SLUICE_SCHEMA names the schema that holds Sluice (default: sluice).`,
    flags: [
      { name: "dry-run", kind: "boolean", help: "print what would be applied, and change nothing" },
      {
        name: "print",
        kind: "boolean",
        help: "print the SQL as one script for psql, without connecting; it skips files that are applied already",
      },
    ],
    examples: ["migrate", "migrate --dry-run", "migrate --print > sluice.sql"],
    needsApi: false,
    run,
  },
};

const noUrl =
  "DATABASE_URL is not set. It must be a Postgres connection string: postgresql://user:password@host/database";

async function run({ values, globals, env, out }: CommandContext): Promise<void> {
  const schema = env.SLUICE_SCHEMA ?? defaultSchema;
  const databaseUrl = globals.database || env.DATABASE_URL;
  const { print, "dry-run": isDryRun } = values;
  if (print && isDryRun) throw usageError("use either --print or --dry-run, not both");
  if (!print && !databaseUrl) throw usageError(noUrl);
  const lines: string[] = [];
  const log = (line: string) => (out.isJson ? void lines.push(line) : out.line(line));
  try {
    if (print) return void process.stdout.write(printScript({ schema }));
    const options = { databaseUrl: databaseUrl ?? "", schema, log };
    if (isDryRun) await dryRun(options);
    else await migrate(options);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError((error as Error).message, exitCodes.failed, { cause: error });
  }
  if (out.isJson) out.json({ schema, dry_run: isDryRun === true, lines });
  else if (!isDryRun) out.line("the schema is up to date");
}
