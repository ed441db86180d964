// What `sluice migrate` runs, as SQL text: `--print` shows the same text. Each step is one transaction. Whether there is
// something to do is decided again within it, under the lock of the schema's migrations, so a step can be run twice.
import { schemaVersion } from "../core/schema-version.ts";
import type { MigrationFile, MigrationFiles } from "./migration-files.ts";

export interface MigrationStep {
  name: string;
  /** The last statement returns a column "line" with texts that say what was done. */
  sql: string;
}

/**
 * A step that has to wait longer for a lock gives up, so nobody waits longer behind it. It is tried again later. This is
 * shorter than deadlock_timeout, so a step that waits crosswise with a claim gives up before Postgres ends one of them.
 */
const lockTimeout = "200ms";

export function migrationSteps({ numbered, functions, runner }: MigrationFiles, schema: string) {
  const names = numbered.map((file) => file.name);
  return [
    { name: "the schema", sql: schemaSql({ schema, runner, names }) },
    ...numbered.map((file) => ({ name: file.name, sql: numberedFileSql(file) })),
    { name: "functions", sql: functionFilesSql(functions) },
    // It locks the default partitions of job and done for a moment, with its own lock timeout.
    { name: "partitions", sql: "select add_partitions();\nselect null as line where false;" },
  ] satisfies MigrationStep[];
}

/** Sets nothing for the session, because the next transaction on a pooler's connection may belong to another client. */
export function beginSql(schema: string): string {
  return `begin isolation level read committed read write;
set local search_path to ${schema}, pg_temp;`;
}

/** The lock ends with the transaction. Its holder is the only one that migrates this schema. */
export function lockSql(schema: string): string {
  return `select pg_advisory_xact_lock(hashtextextended('sluice.migrate.${schema}', 0));`;
}

/** Set after lockSql, because waiting for another migration may take longer than this lock timeout. */
export const limitsSql = `set local lock_timeout = '${lockTimeout}';
set local client_min_messages = warning;
set local check_function_bodies = off;`;

export function migrationScript(files: MigrationFiles, schema: string): string {
  const steps = migrationSteps(files, schema).map(({ name, sql }) =>
    [`-- ${name}`, beginSql(schema), lockSql(schema), limitsSql, sql, "commit;\n"].join("\n"),
  );
  return `-- Brings the schema "${schema}" up to date: run it with psql as the role that owns it. You can run it again, also after an error.
\\set ON_ERROR_STOP on
\\pset format unaligned
\\pset tuples_only on

${steps.join("\n")}`;
}

/** "create schema if not exists" needs the right to create schemas even if the schema exists. */
function schemaSql({ schema, runner, names }: { schema: string; runner: string; names: string[] }): string {
  return `do $$
begin
  if to_regnamespace('${schema}') is null then
    create schema ${schema};
  end if;
end $$;
create table if not exists migration (
  name       text primary key,
  checksum   text not null,
  objects    text[] not null default '{}', -- the functions and views that the file defined
  applied_at timestamptz not null default now()
);
${runner}
select refuse_newer_schema(${schemaVersion}, ${array(names.map(literal))});
select null as line where false;`;
}

function numberedFileSql({ name, checksum, text }: MigrationFile): string {
  return `select unnest(apply_numbered_file('${name}', '${checksum}', ${literal(text)})) as line;`;
}

function functionFilesSql(files: readonly MigrationFile[]): string {
  return `select unnest(apply_function_files(
${array(files.map(({ name }) => literal(name)))},
${array(files.map(checksumSql))},
${array(files.map(({ text }) => literal(text)))})) as line;`;
}

function checksumSql({ checksum, dependsOnServer }: MigrationFile): string {
  const server = " || ' on ' || current_setting('server_version_num')::int / 10000";
  return `'${checksum}'${dependsOnServer ? server : ""}`;
}

/** The checksum that migrate records for a file on a server of this major version. */
export function recordedChecksum({ checksum, dependsOnServer }: MigrationFile, major: number): string {
  return dependsOnServer ? `${checksum} on ${major}` : checksum;
}

function array(elements: readonly string[]): string {
  return `array[${elements.join(",\n")}]::text[]`;
}

/** Dollar quotes keep the files readable in the script. */
function literal(text: string): string {
  let tag = "$file$";
  for (let n = 1; text.includes(tag); n++) tag = `$file${n}$`;
  return `${tag}${text}${tag}`;
}
