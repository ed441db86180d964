// What must be true before a release. Nothing is read or changed here.

export interface ReleaseState {
  version: string;
  /** The version that the API document names. */
  apiVersion: string;
  lockVersion: string;
  changelog: string;
  /** Lines of `git status --porcelain`. */
  changedFiles: readonly string[];
  tags: readonly string[];
  isPrivate: boolean;
  /** Where package.json says that the repository is, and where git pushes to. */
  repository: string;
  remotes: readonly string[];
}

export function faultsOfRelease(state: ReleaseState): string[] {
  const { version, changelog, changedFiles, tags, repository, remotes } = state;
  const heading = headingOf(changelog, version);
  const faults = {
    [`there are changes that are not committed: ${changedFiles.join(", ")}`]: changedFiles.length > 0,
    "package.json is private": state.isPrivate,
    [`${version} is not a version such as 1.2.3`]: !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version),
    [`src/contract/version.ts says ${state.apiVersion}, and package.json ${version}`]:
      state.apiVersion !== version,
    [`package-lock.json says ${state.lockVersion}, and package.json ${version}`]:
      state.lockVersion !== version,
    [`CHANGELOG.md has no section "## ${version} (2026-01-31)"`]: heading === undefined,
    [`the section of ${version} in CHANGELOG.md has no date: ${heading}`]:
      heading !== undefined && !/\d{4}-\d{2}-\d{2}/.test(heading),
    [`there is a tag v${version} already`]: tags.includes(`v${version}`),
    [`no remote of git is the repository of package.json, ${repository}`]: !remotes.some((remote) =>
      sameRepository(remote, repository),
    ),
  };
  return Object.entries(faults).flatMap(([fault, isFault]) => (isFault ? [fault] : []));
}

/** The text of a version's section, for the tag. */
export function notesOf(changelog: string, version: string): string {
  const heading = headingOf(changelog, version);
  if (heading === undefined) return "";
  const [, rest = ""] = changelog.split(`${heading}\n`);
  return (rest.split(/^## /m)[0] ?? "").trim();
}

function headingOf(changelog: string, version: string): string | undefined {
  return changelog.split("\n").find((line) => line === `## ${version}` || line.startsWith(`## ${version} `));
}

/** `git@host:owner/name.git` and `git+https://host/owner/name.git` are the same. */
function sameRepository(one: string, other: string): boolean {
  const [a, b] = [one, other].map((url) =>
    url
      .replace(/\.git$/, "")
      .split(/[/:]/)
      .slice(-2)
      .join("/"),
  );
  return a === b;
}
