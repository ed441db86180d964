// Reads the files in migrations/. Numbered files change tables, and each is applied once. The files in functions/ define
// functions and views, and are applied again whenever their text changes. runner.sql has the functions that apply both.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export interface MigrationFile {
  /** The recorded name, such as "0001_tables.sql" or "functions/claim.sql". */
  name: string;
  text: string;
  checksum: string;
  /** True if the file's effect depends on the server's version. Then it is applied again after an upgrade of the server. */
  dependsOnServer: boolean;
}

export interface MigrationFiles {
  numbered: readonly MigrationFile[];
  functions: readonly MigrationFile[];
  runner: string;
}

const besideSource = fileURLToPath(new URL("../../migrations/", import.meta.url));
const besideBuild = fileURLToPath(new URL("../../../migrations/", import.meta.url)); // from dist/lib/cli/
export const migrationsDirectory = existsSync(besideSource) ? besideSource : besideBuild;

export function readMigrationFiles(directory = migrationsDirectory): MigrationFiles {
  const read = (name: string) => readFileSync(join(directory, name), "utf8");
  const list = (folder: string, pattern: RegExp) => {
    const names = readdirSync(join(directory, folder)).filter((name) => pattern.test(name));
    return names.sort().map((name) => describeFile(folder + name, read(folder + name)));
  };
  return {
    numbered: list("", /^\d{4}_.*\.sql$/),
    functions: list("functions/", /\.sql$/),
    runner: read("runner.sql"),
  };
}

export function describeFile(name: string, text: string): MigrationFile {
  const checksum = createHash("sha256").update(text).digest("hex");
  return { name, text, checksum, dependsOnServer: text.includes("server_version_num") };
}
