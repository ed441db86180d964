// What keeps a commit from being released.
import { expect, test } from "vitest";
import { faultsOfRelease, notesOf, type ReleaseState } from "../../infra/release/checks.ts";

const changelog = `# Changelog

## 1.2.3 (2026-12-01)

- It works.

## 1.2.30 (2026-11-01)

- Older.
`;
const ready: ReleaseState = {
  version: "1.2.3",
  apiVersion: "1.2.3",
  lockVersion: "1.2.3",
  changelog,
  changedFiles: [],
  tags: ["v1.2.2"],
  isPrivate: false,
  repository: "git+https://host.example/owner/sluice.git",
  remotes: ["git@host.example:owner/sluice.git"],
};

test("a clean commit with a version, a dated section and no tag can be released", () => {
  expect(faultsOfRelease(ready)).toEqual([]);
  expect(
    faultsOfRelease({ ...ready, version: "1.2.30", apiVersion: "1.2.30", lockVersion: "1.2.30" }),
  ).toEqual([]);
});

test.each<{ change: Partial<ReleaseState>; fault: RegExp }>([
  { change: { changedFiles: [" M README.md"] }, fault: /not committed: {2}M README.md/ },
  { change: { isPrivate: true }, fault: /private/ },
  { change: { apiVersion: "1.2.2" }, fault: /version\.ts says 1\.2\.2/ },
  { change: { lockVersion: "1.2.2" }, fault: /package-lock\.json says 1\.2\.2/ },
  { change: { changelog: "## 1.2.30 (2026-11-01)\n" }, fault: /no section "## 1\.2\.3 / },
  { change: { changelog: "## 1.2.3 (unreleased)\n" }, fault: /has no date/ },
  { change: { tags: ["v1.2.3"] }, fault: /tag v1\.2\.3 already/ },
  { change: { remotes: ["git@host.example:other/sluice.git"] }, fault: /no remote/ },
  { change: { remotes: [] }, fault: /no remote/ },
])("$change is refused", ({ change, fault }) => {
  const faults = faultsOfRelease({ ...ready, ...change });
  expect(faults).toHaveLength(1);
  expect(faults[0]).toMatch(fault);
});

test("a version that is none is refused", () => {
  const version = "next";
  const faults = faultsOfRelease({ ...ready, version, apiVersion: version, lockVersion: version });
  expect(faults).toContain("next is not a version such as 1.2.3");
});

test("the tag has the notes of its version, and no others", () => {
  expect(notesOf(changelog, "1.2.3")).toBe("- It works.");
  expect(notesOf(changelog, "1.2.30")).toBe("- Older.");
  expect(notesOf(changelog, "9.9.9")).toBe("");
});
