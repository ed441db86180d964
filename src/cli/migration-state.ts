// Reads which files a database has, and finds which files of this release are missing. It changes nothing.
import type pg from "pg";
import { schemaVersion } from "../core/schema-version.ts";
import type { MigrationFiles } from "./migration-files.ts";
import { recordedChecksum } from "./migration-script.ts";

export interface SchemaState {
  /** The major version of the server. */
  majorVersion: number;
  /** 0 if there is no schema yet. */
  schemaVersion: number;
  /** Checksums by file name. */
  recorded: ReadonlyMap<string, string>;
}

export interface Pending {
  numbered: string[];
  functions: string[];
  /** Function files that were applied and no longer exist. Their functions and views are dropped. */
  removed: string[];
}

const lowestMajorVersion = 15;

/** A numbered file has changed since it was applied. */
export class ChangedFileError extends Error {}

export async function readSchemaState(client: pg.Client, schema: string): Promise<SchemaState> {
  const { rows } = await client.query<{ major: number; has_table: boolean; has_version: boolean }>(
    `select current_setting('server_version_num')::int / 10000 as major,
            to_regclass($1) is not null as has_table, to_regprocedure($2) is not null as has_version`,
    [`${schema}.migration`, `${schema}.schema_version()`],
  );
  const { major = 0, has_table = false, has_version = false } = rows[0] ?? {};
  if (major < lowestMajorVersion)
    throw new Error(`PostgreSQL ${lowestMajorVersion} or newer is needed, this is ${major}`);
  const files = has_table
    ? await client.query<{ name: string; checksum: string }>(`select name, checksum from ${schema}.migration`)
    : undefined;
  const version = has_version
    ? await client.query<{ version: number }>(`select ${schema}.schema_version() as version`)
    : undefined;
  return {
    majorVersion: major,
    schemaVersion: version?.rows[0]?.version ?? 0,
    recorded: new Map(files?.rows.map(({ name, checksum }) => [name, checksum])),
  };
}

/** Throws if this release must not change the schema. */
export function findPending({ numbered, functions }: MigrationFiles, state: SchemaState): Pending {
  const { recorded, majorVersion } = state;
  const changed = numbered.find(({ name, checksum }) => (recorded.get(name) ?? checksum) !== checksum);
  if (changed) throw new ChangedFileError(changedText(changed.name));
  const names = new Set([...numbered, ...functions].map(({ name }) => name));
  const unknown = [...recorded.keys()].filter((name) => !names.has(name));
  const newer = unknown.find((name) => !name.startsWith("functions/"));
  if (newer || state.schemaVersion > schemaVersion) throw new Error(newerText(state.schemaVersion, newer));
  return {
    numbered: numbered.filter(({ name }) => !recorded.has(name)).map(({ name }) => name),
    functions: functions
      .filter((file) => recorded.get(file.name) !== recordedChecksum(file, majorVersion))
      .map(({ name }) => name),
    removed: unknown,
  };
}

function changedText(name: string): string {
  return (
    `${name} has changed since it was applied to this database. An applied file must never be edited: put the old text ` +
    "back, and write the change as a new file with the next number. If the database has nothing worth keeping, drop the " +
    "schema and migrate again"
  );
}

function newerText(version: number, file: string | undefined): string {
  const reason = file ? `it has ${file}` : `its version is ${version}, this release has ${schemaVersion}`;
  return `the schema is newer than this release of Sluice (${reason}): use the release that made it, or a newer one`;
}
