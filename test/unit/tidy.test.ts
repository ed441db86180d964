// Keeps the import arrows, one name for the SQL file, the TypeScript file and the test, and the length of SQL functions.
// Import cycles and the length of TypeScript functions are rules of biome.json.
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const allowed: Record<string, { folders: string[]; packages: string[] }> = {
  core: { folders: ["core"], packages: ["croner"] },
  queue: { folders: ["core", "queue"], packages: [] },
  contract: { folders: ["contract", "core"], packages: ["zod"] },
  jobs: { folders: ["core", "queue", "jobs"], packages: ["zod"] },
  sql: { folders: ["core", "jobs", "sql"], packages: ["zod", "@neondatabase/serverless"] },
  // The one folder that needs drizzle-orm, which is an optional peer.
  drizzle: { folders: ["core"], packages: ["drizzle-orm"] },
  client: { folders: ["client", "contract", "core"], packages: [] },
  puller: { folders: ["client", "contract", "core", "queue", "puller"], packages: [] },
  dashboard: {
    folders: ["core", "queue", "jobs", "contract", "dashboard"],
    packages: ["hono", "zod"],
  },
  edge: {
    folders: ["core", "queue", "jobs", "contract", "dashboard", "edge"],
    packages: ["zod", "hono", "@neondatabase/serverless", "pg", "@cloudflare/workers-types", "cloudflare:"],
  },
  // Only over-sql.ts imports from edge: a test below keeps that.
  cli: {
    folders: ["core", "queue", "jobs", "contract", "edge", "local", "cli"],
    packages: ["node:", "pg", "hono", "zod"],
  },
  "test-kit": {
    folders: ["core", "queue", "jobs", "edge", "cli", "local", "test-kit"],
    packages: ["node:", "pg"],
  },
  local: { folders: ["core", "edge", "local"], packages: ["node:", "croner", "pg", "ws"] },
};
const barrels = ["src/index.ts", "src/core/sql/index.ts"];
const looseNames = /^(utils?|helpers?|common|shared|misc|manager)\b/;

const files = globSync("src/**/*.{ts,tsx}", { cwd: root });
const importsOf = (file: string) =>
  [...readFileSync(join(root, file), "utf8").matchAll(/(?:from|import) "([^"]+)"/g)].map(
    ([, target = ""]) => target,
  );
const inTree = (file: string, target: string) => relative(root, join(root, dirname(file), target));

describe.each(Object.keys(allowed))("src/%s", (folder) => {
  const { folders, packages } = allowed[folder] ?? { folders: [], packages: [] };
  const own = files.filter((file) => file.startsWith(`src/${folder}/`));

  test("exists", () => expect(own).not.toEqual([]));

  test.each(own)("%s imports only from folders further in", (file) => {
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

test.each(["client", "puller"])("the %s imports only types from the contract", (folder) => {
  for (const file of files.filter((name) => name.startsWith(`src/${folder}/`))) {
    const text = readFileSync(join(root, file), "utf8");
    expect(text.match(/^import (?!type ).*contract\//gm), file).toBeNull();
  }
});

test("the puller shares with the Worker only how an attempt ends", () => {
  const shared = files
    .filter((file) => file.startsWith("src/puller/"))
    .flatMap((file) => importsOf(file).map((target) => inTree(file, target)))
    .filter((target) => /^src\/(core|queue)\//.test(target));
  expect([...new Set(shared)].toSorted()).toEqual([
    "src/core/errors.ts",
    "src/core/job-options.ts", // types only
    "src/core/job.ts", // types only
    "src/core/next.ts",
    "src/core/typed-job.ts", // types only
    "src/queue/drain/outcome.ts",
    "src/queue/drain/storable.ts",
    "src/queue/steps/create-step.ts",
    "src/queue/steps/step-calls.ts", // types only
    "src/queue/steps/step.ts", // types only
  ]);
});

test("the contract loads no SQL, so that the command line starts fast", () => {
  const own = files.filter((file) => file.startsWith("src/contract/"));
  const loading = own.filter((file) =>
    importsOf(file).some((target) => inTree(file, target).startsWith("src/core/sql/")),
  );
  expect(loading).toEqual([]);
});

test("the client shares with the Worker only how an enqueue is called and a flow is described", () => {
  const shared = files
    .filter((file) => file.startsWith("src/client/"))
    .flatMap((file) => importsOf(file).map((target) => inTree(file, target)))
    .filter((target) => target.startsWith("src/core/"));
  expect([...new Set(shared)].toSorted()).toEqual([
    "src/core/enqueue-args.ts", // types only
    "src/core/flow.ts",
    "src/core/typed-job.ts", // types only
  ]);
});

describe("the command line", () => {
  const own = files.filter((file) => file.startsWith("src/cli/"));

  test("has no route of its own: the contract has them", () => {
    const routes = own.filter((file) =>
      /["'`]\/(v1|health|metrics)/.test(readFileSync(join(root, file), "utf8")),
    );
    expect(routes).toEqual([]);
  });

  test("reaches the API's code only over SQL", () => {
    const reaching = own.filter((file) =>
      importsOf(file).some((target) => inTree(file, target).startsWith("src/edge/")),
    );
    expect(reaching).toEqual(["src/cli/over-sql.ts"]);
  });

  test("loads nothing that Node cannot run: no page of the dashboard, no module of Cloudflare", () => {
    const seen = new Set<string>();
    const visit = (file: string) => {
      if (seen.has(file)) return;
      seen.add(file);
      const loaded = [
        ...readFileSync(join(root, file), "utf8").matchAll(
          /^(?:import|export) (?!type )[^;]*?from "([^"]+)"|import\("([^"]+)"\)|^import "([^"]+)"/gm,
        ),
      ].map((match) => match[1] ?? match[2] ?? match[3] ?? "");
      for (const target of loaded) {
        expect([file, target]).not.toEqual([file, expect.stringMatching(/\.tsx$|^cloudflare:/)]);
        if (target.startsWith(".")) visit(inTree(file, target));
      }
    };
    visit("src/cli/main.ts");
    expect(seen).toContain("src/edge/http/api.ts");
  });
});

const forStatements = new Set(["./column.ts", "./columns.ts", "./schema.ts", "./sql.ts", "./statement.ts"]);
test("a statement file imports no other statement file", () => {
  const statements = files.filter((file) => file.startsWith("src/core/sql/") && !barrels.includes(file));
  for (const file of statements) {
    const others = importsOf(file).filter((target) => target.startsWith("./") && !forStatements.has(target));
    expect(others, file).toEqual([]);
  }
});

test("there are only two barrel files, and no file has a vague name", () => {
  expect(files.filter((file) => file.endsWith("/index.ts"))).toEqual(expect.arrayContaining(barrels));
  expect(files.filter((file) => file.endsWith("/index.ts"))).toHaveLength(barrels.length);
  expect(files.filter((file) => file.split("/").some((part) => looseNames.test(part)))).toEqual([]);
});

test("the deployable Worker stays a composition root", () => {
  expect(readFileSync(join(root, "src/worker.ts"), "utf8").split("\n").length).toBeLessThan(60);
});

test.each(["", "test/bench"])(
  "the lock file of ./%s names no registry and requires no version of Node",
  (at) => {
    const lock = JSON.parse(readFileSync(join(root, at, "package-lock.json"), "utf8"));
    type Entry = { engines?: object; resolved?: string; link?: boolean };
    const entries = Object.entries<Entry>(lock.packages);
    // A link names a folder of this repository.
    const isOdd = ({ engines, resolved, link }: Entry) => engines || (resolved && !link);
    expect(entries.filter(([name, entry]) => name !== "" && isOdd(entry))).toEqual([]);
  },
);

/** Statements that call no function of a file of their name, and why. */
const plainStatements: Record<string, string> = {
  column: "describes a column",
  columns: "selects and decodes the columns of schema.ts",
  index: "the list of all statements",
  schema: "describes the rows that are read",
  sql: "the tag that statements are written with",
  statement: "what a statement is",
  "shown-jobs": "the functions of jobs.ts, with payloads as text for people",
  ping: "reads whether the database takes writes, and the newest rounds",
};
/** SQL files without a test of their name in test/sql, and the files that test them. */
const testedElsewhere: Record<string, string[]> = {
  "advance-dead-runs": ["test/sql/dead-runs.test.ts"],
  "add-attributes": ["test/upgrade/upgrade.test.ts"],
  blockers: ["test/sql/flows.test.ts", "test/sql/chains.test.ts"],
  breaker: ["test/queue/limits.test.ts"],
  "bring-back": ["test/sql/flows.test.ts"],
  "cache-probe": ["test/database/query-cache.test.ts"],
  check: ["test/support/balance.ts"],
  choose: ["test/sql/claim.test.ts"],
  clock: ["test/sql/clock-step.test.ts", "test/sql/mend-stamps.test.ts"],
  continue: ["test/sql/chains.test.ts"],
  deliver: ["test/sql/alarms.test.ts"],
  dispatch: ["test/sql/order.test.ts", "test/sql/order-late.test.ts", "test/model/keys-gate.test.ts"],
  "enqueue-errors": ["test/sql/snapshot.test.ts"],
  "enqueue-flow": ["test/sql/flows.test.ts"],
  "fail-jobs": ["test/sql/settle.test.ts", "test/sql/order-runs.test.ts"],
  "grant-turns": ["test/sql/order-cancel.test.ts"],
  "hash-key": ["test/sql/order.test.ts"],
  idempotency: ["test/sql/enqueue-idempotency.test.ts"],
  identity: ["test/sql/enqueue.test.ts"],
  "insert-blocked": ["test/sql/flows.test.ts"],
  "insert-jobs": ["test/sql/enqueue.test.ts"],
  "insert-uniform": ["test/sql/enqueue.test.ts"],
  jobs: ["test/sql/list.test.ts"],
  "judge-edges": ["test/sql/flows.test.ts", "test/model/flows-mutations.test.ts"],
  lanes: ["test/sql/enqueue.test.ts", "test/sql/many-lanes.test.ts"],
  limits: ["test/queue/limits.test.ts"],
  links: ["test/sql/flows.test.ts"],
  "menu-counts": ["test/dashboard/menu.test.ts"],
  propose: ["test/sql/order-beside.test.ts", "test/sql/shares-late.test.ts"],
  "turn-grants": ["test/model/keys-mutations.test.ts", "test/sql/order-runs.test.ts"],
  "turns-ahead": ["test/model/keys-ahead-mutations.test.ts"],
  "read-waiting": ["test/sql/order-late.test.ts", "test/sql/order-buckets.test.ts"],
  resolve: ["test/sql/flows.test.ts"],
  "resolve-ends": ["test/sql/flows.test.ts", "test/model/flows-gate.test.ts"],
  "return-turns": ["test/sql/order-runs.test.ts"],
  rounds: ["test/queue/rounds.test.ts"],
  "schema-version": ["test/sql/contract.test.ts"],
  "shown-pairs": ["test/sql/snapshot.test.ts", "test/sql/many-lanes.test.ts"],
  signal: ["test/sql/chains.test.ts"],
  spans: ["test/sql/search.test.ts"],
  suspend: ["test/sql/chains.test.ts"],
  take: ["test/sql/claim.test.ts"],
  "take-alone": ["test/queue/limits.test.ts"],
  "take-turns": ["test/sql/order-expired.test.ts", "test/sql/order-buckets.test.ts"],
};
const sqlFiles = globSync("migrations/functions/*.sql", { cwd: root });
const nameOf = (file: string) => file.replace(/^.*\//, "").replace(/\.[^/]*$/, "");

test("each statement file has a SQL file of its name, or is listed with its reason", () => {
  const names = files.filter((file) => file.startsWith("src/core/sql/")).map(nameOf);
  const sqlNames = new Set(sqlFiles.map(nameOf));
  expect(names.filter((name) => !sqlNames.has(name)).toSorted()).toEqual(
    Object.keys(plainStatements).toSorted(),
  );
});

test("each SQL file has a test of its name, or is listed with the files that test it", () => {
  const isTested = (name: string) => existsSync(join(root, `test/sql/${name}.test.ts`));
  const untested = sqlFiles.map(nameOf).filter((name) => !isTested(name));
  expect(untested.toSorted()).toEqual(Object.keys(testedElsewhere).toSorted());
  for (const file of Object.values(testedElsewhere).flat())
    expect(existsSync(join(root, file)), file).toBe(true);
});

const maxFunctionLines = 70;
/** The functions that are longer today. The list only gets shorter. */
const longFunctions: string[] = [];

test(`no SQL function has more than ${maxFunctionLines} lines`, () => {
  const long = sqlFiles.flatMap((file) => {
    const text = readFileSync(join(root, file), "utf8");
    const functions = text.matchAll(
      /^create or replace function ([a-z_]+).*?(?:^(?:end )?\$\$;|^end;$|^return [^;]*;)/gms,
    );
    return [...functions]
      .filter(([body]) => body.split("\n").length > maxFunctionLines)
      .map(([, name]) => `${nameOf(file)}.sql: ${name}`);
  });
  expect(long).toEqual(longFunctions);
});
