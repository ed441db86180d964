// The completion scripts, loaded by real shells.
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runCli, useCli } from "./run-cli.ts";

useCli();
const directory = mkdtempSync(join(tmpdir(), "sluice-completion-"));
const script = join(directory, "bash");
const zshScript = join(directory, "zsh");
const empty = join(directory, "empty");
mkdirSync(empty);

beforeAll(async () => {
  for (const shell of ["bash", "zsh"]) {
    const { code, stdout } = await runCli(["completion", shell]);
    expect(code).toBe(0);
    writeFileSync(join(directory, shell), stdout);
  }
  writeFileSync(join(directory, ".zshrc"), zshrc);
});
afterAll(() => rmSync(directory, { recursive: true }));

const cases: [words: string[], offered: string[]][] = [
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
];

/** What bash offers after the words. The last one is being typed. */
async function offeredByBash(...words: string[]): Promise<string[]> {
  const list = words.map((word) => `'${word}'`).join(" ");
  const program = `source '${script}'; COMP_WORDS=(sluice ${list}); COMP_CWORD=${words.length}; _sluice; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await promisify(execFile)("bash", ["--norc", "-euc", program]);
  return stdout.split("\n").filter((word) => word !== "");
}

test.each(cases)("bash completes %j", async (words, expected) => {
  expect(await offeredByBash(...words)).toEqual(expected);
});

test("the script registers itself for sluice", () => {
  const registered = execFileSync("bash", ["--norc", "-c", `source '${script}'; complete -p sluice`], {
    encoding: "utf8",
  });
  expect(registered).toContain("-F _sluice sluice");
});

/** An interactive zsh. Each word that it offers is a line, and so is the end of a line that was completed. */
const zshrc = `
PS1= RPS1=
source '${zshScript}'
compadd() {
  local -a hits
  if [[ " $* " != *" -"[OAD]" "* ]]; then
    builtin compadd -A hits "$@"
    print -rl -- "OFFERED "\${^hits}
  fi
  builtin compadd "$@"
}
end-line() { print "ENDED"; BUFFER=; zle accept-line }
zle -N end-line
bindkey '^I' complete-word
bindkey '^X' end-line
print READY
`;

/** Types the line into a zsh in a terminal of its own, with a Tab at its end. */
const typeIntoZsh = `
zmodload zsh/zpty
zpty shell zsh -i
while zpty -r shell line && [[ $line != *READY* ]]; do :; done
zpty -w -n shell "$1"$'\\t\\x18'
while zpty -r shell line && [[ $line != *ENDED* ]]; do print -r -- $line; done
zpty -d shell
`;

async function offeredByZsh(...words: string[]): Promise<string[]> {
  const line = ["sluice", ...words].join(" ");
  // In an empty folder there are no files to offer.
  const options = { env: { ...process.env, ZDOTDIR: directory, TERM: "dumb" }, cwd: empty };
  const { stdout } = await promisify(execFile)("zsh", ["-fc", typeIntoZsh, "zsh", line], options);
  return [...stdout.matchAll(/OFFERED (\S*)\r?$/gm)].map(([, word = ""]) => word);
}

const hasZsh = (() => {
  try {
    execFileSync("zsh", ["--version"]);
    return true;
  } catch {
    return false;
  }
})();

if (hasZsh)
  test.each(cases)("zsh completes %j", async (words, expected) => {
    expect(await offeredByZsh(...words)).toEqual(expected);
  });
else
  test("without a zsh here: its script is the one of bash after the lines that start zsh's completion", () => {
    const [bash, zsh] = [script, zshScript].map((path) => readFileSync(path, "utf8"));
    expect(zsh).toBe(
      "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\nautoload -Uz bashcompinit && bashcompinit\n" +
        bash,
    );
    // The builtins of bash that zsh's bashcompinit has, and nothing else that only bash knows.
    expect(bash).not.toMatch(/\b(shopt|mapfile|readarray|declare -A|\[\[)/);
  });
