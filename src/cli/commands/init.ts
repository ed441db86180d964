// sluice init: makes a Worker with Sluice of the current folder. It writes new files and adds to files that are there. It
// removes and replaces nothing, and it asks first.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline/promises";
import type { Commands } from "../command-table.ts";
import { CommandError } from "../exit.ts";
import { type Change, type Plan, planInit } from "../init/plan.ts";
import type { Output } from "../output/output.ts";

export const commands: Commands = {
  "": {
    summary: "Make a Worker with Sluice of this folder",
    details: `Writes wrangler's settings, a jobs file, the Worker, scripts and .dev.vars. Files that are there are never replaced: what is
missing is added to them, or printed for you to add. The second run changes nothing.`,
    flags: [{ name: "yes", kind: "boolean", help: "do not ask" }],
    examples: ["init", "init --yes"],
    needsApi: false,
    run: ({ values, out }) => init(process.cwd(), { isSure: values.yes === true, out }),
  },
};

async function init(root: string, { isSure, out }: { isSure: boolean; out: Output }): Promise<void> {
  const plan = planOf(root);
  out.line(describe(plan));
  if (plan.changes.length > 0) {
    if (!isSure) await ask();
    for (const change of plan.changes) write(root, change);
  }
  for (const text of plan.byHand) out.line(`\n${text}`);
  if (plan.changes.length > 0) out.line("\nNext: npm install && npx sluice dev");
}

function planOf(root: string): Plan {
  try {
    return planInit(root);
  } catch (error) {
    throw new CommandError((error as Error).message);
  }
}

function describe({ changes, byHand }: Plan): string {
  if (changes.length === 0)
    return byHand.length > 0 ? "Every file is there." : "Everything is there. Nothing to do.";
  const width = Math.max(...changes.map(({ path }) => path.length));
  return changes
    .map(({ path, before, added }) =>
      before === undefined ? `create  ${path}` : `add to  ${path.padEnd(width)}  ${added.join(", ")}`,
    )
    .join("\n");
}

async function ask(): Promise<void> {
  if (!process.stdin.isTTY)
    throw new CommandError("nothing was written: there is no terminal to ask at; use --yes");
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await terminal.question("\nWrite this? [y/N] ");
  terminal.close();
  if (!/^y(es)?$/i.test(answer.trim())) throw new CommandError("nothing was written");
}

/** A file that somebody has made or changed since the plan was shown is left alone. */
function write(root: string, { path, before, after, isSecret }: Change): void {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  if (before !== undefined && readFileSync(file, "utf8") !== before)
    throw new CommandError(`${path} has changed meanwhile; run it again`);
  writeFileSync(file, after, { flag: before === undefined ? "wx" : "w", ...(isSecret && { mode: 0o600 }) });
}
