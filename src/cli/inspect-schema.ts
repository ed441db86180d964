// Compares the files that were applied to a database with those of this release, by their checksums.
import { defaultSchema } from "../core/schema-name.ts";
import { schemaVersion } from "../core/schema-version.ts";
import { connect } from "./connect.ts";
import type { Finding } from "./inspect-deployment.ts";
import { readMigrationFiles } from "./migration-files.ts";
import { findPending, readSchemaState } from "./migration-state.ts";

export async function inspectSchema(databaseUrl: string, schema = defaultSchema): Promise<Finding[]> {
  const client = await connect(databaseUrl, () => {});
  try {
    const state = await readSchemaState(client, schema);
    return [
      { check: "PostgreSQL", level: "ok", found: `version ${state.majorVersion}` },
      {
        check: "schema version",
        level: state.schemaVersion === schemaVersion ? "ok" : "wrong",
        found: `${state.schemaVersion}; this release needs ${schemaVersion}`,
      },
      compareFiles(state),
    ];
  } finally {
    await client.end();
  }
}

function compareFiles(state: Awaited<ReturnType<typeof readSchemaState>>): Finding {
  const check = "schema files";
  try {
    const { numbered, functions, removed } = findPending(readMigrationFiles(), state);
    const differing = [...numbered, ...functions, ...removed];
    if (differing.length === 0) return { check, level: "ok", found: "all are those of this release" };
    const names = differing.slice(0, 5).join(", ") + (differing.length > 5 ? ", …" : "");
    return {
      check,
      level: "wrong",
      found: `${differing.length} differ from this release (${names}): run npx sluice migrate`,
    };
  } catch (error) {
    return { check, level: "wrong", found: (error as Error).message };
  }
}
