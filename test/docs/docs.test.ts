// What README and docs/ say is checked as far as a machine can: every TypeScript block compiles, every SQL block runs,
// every link leads somewhere, every script and command exists, and the API reference is current.
import { execFile } from "node:child_process";
import { copyFileSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { apiReference } from "../../infra/api-reference.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { workerRole } from "../support/worker-role.ts";

const root = resolve(import.meta.dirname, "../..");
const pages = [
  "README.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md"))
    .map((path) => join("docs", path)),
];
const read = (page: string) => readFileSync(join(root, page), "utf8");

/** The code blocks of one language, indented ones of lists too. */
function blocksOf(language: string): { name: string; text: string }[] {
  return pages.flatMap((page) =>
    [...read(page).matchAll(/^( *)```(\w+)\n(.*?)^ *```$/gms)]
      .filter((match) => match[2] === language)
      .map(({ 1: indent = "", 3: body = "", index }) => ({
        name: `${page}:${read(page).slice(0, index).split("\n").length}`,
        text: body.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
      })),
  );
}

test("every TypeScript block compiles", { timeout: 120_000 }, async () => {
  const directory = join(import.meta.dirname, "blocks");
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory);
  copyFileSync(join(import.meta.dirname, "jobs.ts"), join(directory, "jobs.ts"));
  for (const { name, text } of blocksOf("ts")) {
    writeFileSync(join(directory, `${name.replaceAll(/[/:]/g, "_")}.ts`), `${text}\nexport {};\n`);
  }
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const run = promisify(execFile)(process.execPath, [tsc, "-p", import.meta.dirname]);
  const output = await run.then(
    () => "",
    (error: { stdout: string }) => error.stdout,
  );
  expect(output).toBe("");
  rmSync(directory, { recursive: true });
});

const db = useTestDatabase();

/** The roles that blocks create or give rights to. All tests share one server, so the Worker's role is there already. */
const roles = `create role app; alter role ${workerRole} rename to other_worker`;

test.each(blocksOf("sql"))("the SQL of $name runs", async ({ text }) => {
  const client = await db.pool.connect();
  try {
    await client.query(`begin; ${roles}`);
    await client.query(text);
  } finally {
    await client.query("rollback");
    client.release();
  }
});

const examples = globSync("examples/{*,*/*}.md", { cwd: root });

test.each([...pages, ...examples])("every link of %s leads to a file and a heading", (page) => {
  const targets = [...read(page).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^[a-z]+:/.test(target));
  const broken = targets.filter((target) => {
    const [path = "", heading] = target.split("#");
    const file = path === "" ? page : relative(root, resolve(root, dirname(page), path));
    return !exists(file) || (heading !== undefined && !headingsOf(file).includes(heading));
  });
  expect(broken).toEqual([]);
});

function exists(path: string): boolean {
  try {
    readdirSync(join(root, path));
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOTDIR";
  }
}

/** As GitHub makes them: lower case, spaces to dashes, no other signs. */
function headingsOf(file: string): string[] {
  return [...read(file).matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\- _]/gu, "")
      .replaceAll(" ", "-"),
  );
}

test("every npm script that a page names exists", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const named = pages.flatMap((page) =>
    [...read(page).matchAll(/npm run ([\w:]+)/g)].map((match) => match[1] ?? ""),
  );
  expect([...new Set(named)].filter((name) => !(name in scripts))).toEqual([]);
});

test("docs/README.md leads to every page", () => {
  const index = read("docs/README.md");
  const missing = pages
    .filter((page) => /^docs\/[\w-]+\.md$/.test(page) && page !== "docs/README.md")
    .filter((page) => !index.includes(`(${page.slice("docs/".length)})`));
  expect(missing).toEqual([]);
});

test("docs/api.md is current: run `npm run docs`", () => {
  expect(read("docs/api.md")).toBe(apiReference());
});
