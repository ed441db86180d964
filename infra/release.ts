// `npm run release`: checks that this commit can be released, packs it, tries the tarball in an empty folder, and tags the
// commit. It publishes nothing: it prints the two commands that do. With --dry-run it makes no tag.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { version as apiVersion } from "../src/contract/version.ts";
import { faultsOfRelease, notesOf, type ReleaseState } from "./release/checks.ts";
import { tryTarball } from "./release/try-tarball.ts";

const root = join(import.meta.dirname, "..");
const log = (line: string): void => void process.stdout.write(`${line}\n`);

try {
  const options = { "dry-run": { type: "boolean", default: false } } as const;
  release({ isDryRun: parseArgs({ options }).values["dry-run"] });
} catch (error) {
  process.stderr.write(`release: ${(error as Error).message}\n`);
  process.exitCode = 1;
}

function release({ isDryRun }: { isDryRun: boolean }): void {
  const state = readState();
  const faults = faultsOfRelease(state);
  for (const fault of faults) log(`not ready: ${fault}`);
  if (faults.length > 0 && !isDryRun) throw new Error("nothing was tagged");
  const tarball = pack();
  log(`packed ${tarball}`);
  tryTarball(tarball, log);
  log("the tarball works in an empty folder");
  if (faults.length > 0) throw new Error(`it could not be released: ${faults.length} checks failed`);
  const tag = `v${state.version}`;
  if (isDryRun) {
    log(`a release would make the tag ${tag}`);
    return;
  }
  git(
    "tag",
    "--annotate",
    tag,
    "--message",
    `Sluice ${state.version}\n\n${notesOf(state.changelog, state.version)}`,
  );
  log(`made the tag ${tag}. To publish:\n  git push origin ${tag}\n  npm publish ${tarball}`);
}

function readState(): ReleaseState {
  const read = (file: string) => readFileSync(join(root, file), "utf8");
  const manifest = JSON.parse(read("package.json"));
  const remotes = lines(git("remote")).map((remote) => git("remote", "get-url", remote).trim());
  return {
    version: manifest.version,
    apiVersion,
    lockVersion: JSON.parse(read("package-lock.json")).version,
    changelog: read("CHANGELOG.md"),
    changedFiles: lines(git("status", "--porcelain")),
    tags: lines(git("tag", "--list")),
    isPrivate: manifest.private === true,
    repository: manifest.repository.url,
    remotes,
  };
}

function pack(): string {
  const into = join(root, "dist/release");
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into, { recursive: true });
  const output = execFileSync("npm", ["pack", "--json", "--pack-destination", into], {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [{ filename }] = JSON.parse(output.slice(output.indexOf("[")));
  return join(into, filename);
}

function git(...args: string[]): string {
  return execFileSync("git", args, { cwd: root, encoding: "utf8" });
}

function lines(text: string): string[] {
  return text.split("\n").filter(Boolean);
}
