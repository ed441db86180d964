// Keeps the import arrows: inward only, and nothing of a runtime in the core or the queue.
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const allowed: Record<string, { folders: string[]; packages: string[] }> = {
  core: { folders: ["core"], packages: ["drizzle-orm"] },
  queue: { folders: ["core", "queue"], packages: [] },
  contract: { folders: ["contract", "core"], packages: ["zod"] },
  jobs: { folders: ["core", "queue", "jobs"], packages: ["zod"] },
  sql: { folders: ["core", "jobs", "sql"], packages: ["drizzle-orm", "zod", "@neondatabase/serverless"] },
  client: { folders: ["client", "contract"], packages: [] },
  edge: {
    folders: ["core", "queue", "jobs", "contract", "edge"],
    packages: ["zod", "hono", "@neondatabase/serverless", "@cloudflare/workers-types"],
  },
  cli: { folders: ["core", "cli"], packages: ["node:", "pg"] },
};
const barrels = ["src/index.ts", "src/core/sql/index.ts"];
const looseNames = /^(utils?|helpers?|common|shared|misc|manager)\b/;

const files = globSync("src/**/*.ts", { cwd: root });
const importsOf = (file: string) =>
  [...readFileSync(join(root, file), "utf8").matchAll(/(?:from|import) "([^"]+)"/g)].map(
    ([, target = ""]) => target,
  );
const inTree = (file: string, target: string) => relative(root, join(root, dirname(file), target));

describe.each(Object.keys(allowed))("src/%s", (folder) => {
  const { folders, packages } = allowed[folder] ?? { folders: [], packages: [] };
  const own = files.filter((file) => file.startsWith(`src/${folder}/`));

  test("is there", () => expect(own).not.toEqual([]));

  test.each(own)("%s imports only what lies inward", (file) => {
    for (const target of importsOf(file)) {
      if (target.startsWith(".")) expect(folders).toContain(inTree(file, target).split("/")[1]);
      else
        expect(
          packages.some(
            (name) =>
              target === name ||
              target.startsWith(`${name}/`) ||
              (name.endsWith(":") && target.startsWith(name)),
          ),
          target,
        ).toBe(true);
    }
  });
});

test("the client imports the contract for its types alone", () => {
  for (const file of files.filter((name) => name.startsWith("src/client/"))) {
    const text = readFileSync(join(root, file), "utf8");
    expect(text.match(/^import (?!type ).*contract\//gm), file).toBeNull();
  }
});

test("a statement file imports no other statement file", () => {
  const statements = files.filter((file) => file.startsWith("src/core/sql/") && !barrels.includes(file));
  for (const file of statements) {
    const others = importsOf(file).filter((target) => target.startsWith("./") && target !== "./statement.ts");
    expect(others, file).toEqual([]);
  }
});

test("there are no barrels but the two, and no file that is named after nothing", () => {
  expect(files.filter((file) => file.endsWith("/index.ts"))).toEqual(expect.arrayContaining(barrels));
  expect(files.filter((file) => file.endsWith("/index.ts"))).toHaveLength(barrels.length);
  expect(files.filter((file) => file.split("/").some((part) => looseNames.test(part)))).toEqual([]);
});

test("the deployable Worker stays a composition root", () => {
  expect(readFileSync(join(root, "src/worker.ts"), "utf8").split("\n").length).toBeLessThan(60);
});

test.each(["", "test/bench"])(
  "the lock file of ./%s names no registry and asks nothing of the machine's Node",
  (at) => {
    const lock = JSON.parse(readFileSync(join(root, at, "package-lock.json"), "utf8"));
    type Entry = { engines?: object; resolved?: string; link?: boolean };
    const entries = Object.entries<Entry>(lock.packages);
    // A link names a folder of this repository.
    const isOdd = ({ engines, resolved, link }: Entry) => engines || (resolved && !link);
    expect(entries.filter(([name, entry]) => name !== "" && isOdd(entry))).toEqual([]);
  },
);
