#!/usr/bin/env node
// The command line: `sluice migrate`, in this repository `npm run migrate`. Reads its settings from the environment.
import { defaultSchema } from "../core/schema-name.ts";
import { migrate } from "./migrate.ts";

const usage = `usage: sluice migrate

Brings the Sluice schema of the database at DATABASE_URL up to date.
  DATABASE_URL    a Postgres connection string, best the direct one where there is a pooled one too (required)
  SLUICE_SCHEMA   the schema that holds Sluice (default: sluice)`;

const [command, ...rest] = process.argv.slice(2);
if (rest.includes("--help") || command === "--help") {
  console.log(usage);
} else if (command !== "migrate" || rest.length > 0) {
  fail(usage, 2);
} else if (!process.env.DATABASE_URL) {
  fail(
    "DATABASE_URL is not set. It takes a Postgres connection string: postgresql://user:password@host/database",
    2,
  );
} else {
  await run(process.env.DATABASE_URL);
}

async function run(databaseUrl: string): Promise<void> {
  try {
    const schema = process.env.SLUICE_SCHEMA ?? defaultSchema;
    await migrate({ databaseUrl, schema, log: console.log });
    console.log("the schema is up to date");
  } catch (error) {
    fail(`migrate: ${(error as Error).message}`, 1);
  }
}

function fail(message: string, exitCode: number): void {
  console.error(message);
  process.exitCode = exitCode;
}
