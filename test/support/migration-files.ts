// The migration files of this release with some of them changed, as a later release would have them.
import { describeFile, type MigrationFiles, readMigrationFiles } from "../../src/cli/migration-files.ts";

/** Texts by file name. Null removes a file. */
export function changeFiles(
  texts: Record<string, string | null>,
  files = readMigrationFiles(),
): MigrationFiles {
  const change = (list: MigrationFiles["numbered"], isInList: (name: string) => boolean) => {
    const kept = list.filter(({ name }) => !(name in texts));
    const added = Object.entries(texts).flatMap(([name, text]) =>
      text !== null && isInList(name) ? [describeFile(name, text)] : [],
    );
    return [...kept, ...added].sort((a, b) => (a.name < b.name ? -1 : 1));
  };
  return {
    numbered: change(files.numbered, (name) => !name.includes("/")),
    functions: change(files.functions, (name) => name.includes("/")),
    runner: files.runner,
  };
}

export function fileText(name: string): string {
  const { numbered, functions } = readMigrationFiles();
  const file = [...numbered, ...functions].find((candidate) => candidate.name === name);
  if (!file) throw new Error(`there is no ${name}`);
  return file.text;
}
