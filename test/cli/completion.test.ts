// The completion scripts, loaded by real shells.
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runCli, useCli } from "./run-cli.ts";

useCli();
const directory = mkdtempSync(join(tmpdir(), "sluice-completion-"));
const script = join(directory, "bash");

beforeAll(async () => {
  const { code, stdout } = await runCli(["completion", "bash"]);
  expect(code).toBe(0);
  writeFileSync(script, stdout);
});
afterAll(() => rmSync(directory, { recursive: true }));

/** What bash offers after the words. The last one is being typed. */
async function offered(...words: string[]): Promise<string[]> {
  const list = words.map((word) => `'${word}'`).join(" ");
  const program = `source '${script}'; COMP_WORDS=(sluice ${list}); COMP_CWORD=${words.length}; _sluice; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await promisify(execFile)("bash", ["--norc", "-euc", program]);
  return stdout.split("\n").filter((word) => word !== "");
}

describe("bash completes", () => {
  test.each([
    [["sta"], ["status"]],
    [["d"], ["dev", "dead", "doctor"]],
    [
      ["jobs", ""],
      ["list", "get", "cancel", "resolve", "wait", "--help"],
    ],
    [["jobs", "list", "--sta"], ["--status"]],
    [["jobs", "list", "--status", "de"], ["dead"]],
    [["enqueue", "echo", "--max"], ["--max-attempts"]],
    [
      ["enqueue", "--on-blocker-dead", ""],
      ["die", "run"],
    ],
    [["status", "--wa"], ["--watch"]],
    [["completion", ""], expect.arrayContaining(["bash", "zsh"])],
    [["no-such-command", ""], []],
  ])("%j", async (words, expected) => {
    expect(await offered(...words)).toEqual(expected);
  });
});

test("the script registers itself for sluice", () => {
  const registered = execFileSync("bash", ["--norc", "-c", `source '${script}'; complete -p sluice`], {
    encoding: "utf8",
  });
  expect(registered).toContain("-F _sluice sluice");
});

const hasZsh = (() => {
  try {
    execFileSync("zsh", ["--version"]);
    return true;
  } catch {
    return false;
  }
})();

test.skipIf(!hasZsh)("zsh loads its script", async () => {
  const { stdout } = await runCli(["completion", "zsh"]);
  writeFileSync(join(directory, "zsh"), stdout);
  const loaded = execFileSync("zsh", ["-fc", `source '${join(directory, "zsh")}'; whence -w _sluice`], {
    encoding: "utf8",
  });
  expect(loaded).toContain("_sluice: function");
});
