#!/usr/bin/env node
// The command line: `sluice migrate`, or `npm run migrate` in this repository. It reads its settings from the environment.
// `sluice dev` and `sluice init` read their own arguments.
import { parseArgs } from "node:util";
import { defaultSchema } from "../core/schema-name.ts";
import { dryRun, migrate, printScript } from "./migrate.ts";

const usage = `usage: sluice migrate [--dry-run | --print]
       sluice init --help, sluice dev --help

Brings the Sluice schema of the database at DATABASE_URL up to date. It is safe to run it twice, or two at once.

  --dry-run       print what would be applied, and change nothing
  --print         print the SQL as one script for psql, without connecting. It works for every database: when
                  it runs, it skips the files that are already applied
  --help          print this text

  DATABASE_URL    the Postgres connection string (required, except with --print). If your provider also gives you a
                  pooled one, use the direct one
  SLUICE_SCHEMA   the schema that holds Sluice (default: sluice)`;

const { DATABASE_URL: databaseUrl, SLUICE_SCHEMA: schema = defaultSchema } = process.env;
const [command, ...rest] = process.argv.slice(2);
// Loaded only when they are used, because their packages are large.
if (command === "dev") (await import("./commands/dev.ts")).dev(rest);
else if (command === "init") await (await import("./commands/init.ts")).init(rest);
else await migrateCommand();

async function migrateCommand(): Promise<void> {
  const flags = parseFlags(process.argv.slice(2));
  if (typeof flags === "string") fail(`${flags}\n\n${usage}`, 2);
  else if (flags.help) console.log(usage);
  else if (!databaseUrl && !flags.print) {
    fail(
      "DATABASE_URL is not set. It must be a Postgres connection string: postgresql://user:password@host/database",
      2,
    );
  } else await run(databaseUrl ?? "", flags);
}

interface Flags {
  help: boolean;
  print: boolean;
  dryRun: boolean;
}

/** Returns the flags, or a text that says what is wrong with them. */
function parseFlags(args: string[]): Flags | string {
  try {
    const boolean = { type: "boolean", default: false } as const;
    const options = { help: { ...boolean, short: "h" }, print: boolean, "dry-run": boolean } as const;
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    const { help, print, "dry-run": dryRun } = values;
    if (!help && positionals.join(" ") !== "migrate")
      return "the commands are: sluice init, sluice dev, sluice migrate";
    if (print && dryRun) return "use either --print or --dry-run, not both";
    return { help, print, dryRun };
  } catch (error) {
    return (error as Error).message;
  }
}

async function run(databaseUrl: string, { print, dryRun: isDryRun }: Flags): Promise<void> {
  try {
    if (print) return void process.stdout.write(printScript({ schema }));
    const options = { databaseUrl, schema, log: console.log };
    if (isDryRun) return await dryRun(options);
    await migrate(options);
    console.log("the schema is up to date");
  } catch (error) {
    fail(`migrate: ${(error as Error).message}`, 1);
  }
}

function fail(message: string, exitCode: number): void {
  console.error(message);
  process.exitCode = exitCode;
}
