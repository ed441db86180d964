// require schema version: fails if the schema is older than the Worker needs.
import { schemaVersion } from "../schema-version.ts";
import { sql } from "./sql.ts";
import { one, type Statement } from "./statement.ts";

/** Answers with the schema's version. */
export function requireSchemaVersion(version = schemaVersion): Statement<number> {
  return {
    name: "require schema version",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.require_schema_version(${version}::int) as version`,
    decode: one((row) => Number(row.version)),
  };
}
