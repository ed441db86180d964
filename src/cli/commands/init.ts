// `sluice init`: makes a Worker with Sluice of the current folder. It writes new files and adds to files that are there. It
// removes and replaces nothing, and it asks first.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline/promises";
import { parseArgs } from "node:util";
import { type Change, type Plan, planInit } from "../init/plan.ts";

const usage = `usage: sluice init [--yes]

Makes a Worker with Sluice of this folder: wrangler's settings, a jobs file, the Worker, scripts and .dev.vars. Files that are
there are never replaced: what is missing is added to them, or printed for you to add. Run it twice, and nothing changes.

  --yes     do not ask
  --help    print this text`;

export async function init(args: string[]): Promise<void> {
  try {
    const options = {
      yes: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    } as const;
    const { yes, help } = parseArgs({ args, options }).values;
    if (help) return console.log(usage);
    await run(process.cwd(), { yes });
  } catch (error) {
    const isUsage = (error as { code?: string }).code?.startsWith("ERR_PARSE_ARGS");
    console.error(isUsage ? `${(error as Error).message}\n\n${usage}` : `init: ${(error as Error).message}`);
    process.exitCode = isUsage ? 2 : 1;
  }
}

async function run(root: string, { yes }: { yes: boolean }): Promise<void> {
  const plan = planInit(root);
  console.log(describe(plan));
  if (plan.changes.length > 0) {
    if (!yes && !(await isWanted())) {
      console.error("Nothing was written.");
      process.exitCode = 1;
      return;
    }
    for (const change of plan.changes) write(root, change);
  }
  for (const text of plan.byHand) console.log(`\n${text}`);
  if (plan.changes.length > 0) console.log("\nNext: npm install && npx sluice dev");
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

async function isWanted(): Promise<boolean> {
  if (!process.stdin.isTTY) {
    console.error("There is no terminal to ask at. Use --yes.");
    return false;
  }
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await terminal.question("\nWrite this? [y/N] ");
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}

/** A file that somebody has made or changed since the plan was shown is left alone. */
function write(root: string, { path, before, after, isSecret }: Change): void {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  if (before !== undefined && readFileSync(file, "utf8") !== before)
    throw new Error(`${path} has changed meanwhile; run it again`);
  writeFileSync(file, after, { flag: before === undefined ? "wx" : "w", ...(isSecret && { mode: 0o600 }) });
}
