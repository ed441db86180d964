// What is under migrations/, in the order in which it is applied. Tables change by numbered files, forward only, each
// applied once; functions and views stand in functions/, applied again whenever their text changes.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";

export interface MigrationFile {
  /** As it is recorded: "0001_tables.sql", "functions/claim.sql". */
  name: string;
  text: string;
  checksum: string;
}

/** What is applied in one transaction. */
export interface MigrationStep {
  name: string;
  files: readonly MigrationFile[];
  /** `recorded` is the checksum that was last applied, if any. */
  isPending(file: MigrationFile, recorded: string | undefined): boolean;
  /** Runs before and after the pending files, where there are any. */
  before?: string;
  after?: string;
}

const besideSource = new URL("../../migrations/", import.meta.url);
const besideBuild = new URL("../../../migrations/", import.meta.url); // from dist/lib/cli/
const directory = existsSync(besideSource) ? besideSource : besideBuild;

export function migrationSteps(): MigrationStep[] {
  const tables = filesOf("").map((file) => ({
    name: file.name,
    files: [file],
    isPending: (_: MigrationFile, recorded: string | undefined) => recorded === undefined,
  }));
  return [...tables, functionsStep()];
}

/** All in one transaction, since they call each other; and only the owner and the Worker's role may call them. */
function functionsStep(): MigrationStep {
  return {
    name: "functions",
    files: filesOf("functions/"),
    isPending: (file, recorded) => recorded !== file.checksum,
    before: "set local check_function_bodies = off",
    after: `
      do $$ begin execute format('revoke execute on all functions in schema %I from public', current_schema()); end $$;
      select renew_worker_rights()`,
  };
}

function filesOf(folder: string): MigrationFile[] {
  const files = readdirSync(new URL(folder, directory)).filter((file) => file.endsWith(".sql"));
  return files.sort().map((file) => {
    const name = folder + file;
    const text = readFileSync(new URL(name, directory), "utf8");
    return { name, text, checksum: createHash("sha256").update(text).digest("hex") };
  });
}
