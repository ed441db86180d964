// The package as users install it: packed by npm and unpacked into an empty project, with the dependencies that its
// package.json names and nothing else. No network is used.
import { execFile } from "node:child_process";
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { manifestOf, pack, root, unpack } from "../support/packed.ts";
import { useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const run = promisify(execFile);
const project = mkdtempSync(join(tmpdir(), "sluice-package-"));
let tarball: string;
const installed = join(project, "node_modules/sluice");
const bin = join(project, "node_modules/.bin/sluice");
const adminUrl = inject("adminDatabaseUrl");
const emptyDatabase = `package_${project.slice(-6).toLowerCase()}`;
const databaseUrl = adminUrl.replace(/[^/]+$/, emptyDatabase);

beforeAll(async () => {
  tarball = await pack(project);
  await unpack(tarball, project);
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "consumer", type: "module" }));
  mkdirSync(dirname(bin));
  symlinkSync(join(installed, manifestOf(installed).bin.sluice), bin);
  chmodSync(bin, 0o755); // as npm does when it installs
  await queryAsAdmin(`create database ${emptyDatabase}`);
}, 240_000);

afterAll(async () => {
  await queryAsAdmin(`drop database if exists ${emptyDatabase} with (force)`);
  rmSync(project, { recursive: true, force: true });
});

async function queryAsAdmin(text: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  await client.query(text);
  await client.end();
}

test("the package contains the library, migrations, templates, examples and documentation, but no sources and no tests", async () => {
  const { stdout } = await run("tar", ["-tzf", tarball]);
  const files = stdout.trim().split("\n");
  const parts = new Set(files.map((file) => file.replace(/^package\//, "").replace(/^([^/]+\/).*/, "$1")));
  expect([...parts].sort()).toEqual([
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "dist/",
    "docs/",
    "examples/",
    "infra/",
    "migrations/",
    "package.json",
    "templates/",
  ]);
  expect(
    files.filter((file) => /(?<!\.d)\.ts$/.test(file) && !/\/(templates|examples)\//.test(file)),
  ).toEqual([]);
  expect(files).toContain("package/migrations/functions/enqueue.sql");
  const exported = JSON.stringify(manifestOf(installed).exports).match(/\.\/dist[^"]+/g) ?? [];
  expect(exported.filter((file) => !files.includes(join("package", file)))).toEqual([]);
});

/** They read these in the repository. */
const forContributors = /CONTRIBUTING|SECURITY|\.\.\/(src|test|infra)\/|^docs\/(bench|decisions)\//;

/** Registries show pictures from the repository, so they are not in the package. */
test("every link of its README and its docs leads to a file of the package", async () => {
  const texts = globSync("{README.md,CHANGELOG.md,docs/**/*.md}", { cwd: installed });
  const links = texts.flatMap((text) =>
    [
      ...readFileSync(join(installed, text), "utf8").matchAll(/(?<!!\[[^\]]*)\]\((?!https?:|#)([^)#\s]+)/g),
    ].map(([, to = ""]) => ({
      text,
      to,
      isThere: existsSync(join(installed, dirname(text), to)),
    })),
  );
  expect(links.length).toBeGreaterThan(20);
  expect(links.filter(({ text, to, isThere }) => !isThere && !forContributors.test(`${text} ${to}`))).toEqual(
    [],
  );
});

describe("a producer's bundle", () => {
  const declared = `import { defineType } from "sluice";
    import * as z from "zod";
    const welcome = defineType("welcome", { payload: z.object({ userId: z.string() }) });`;

  test.each([
    {
      entry: "sluice/sql",
      use: `${declared} import { enqueue } from "sluice/sql"; console.log(() => enqueue(null, welcome, {}));`,
      packages: ["sluice", "zod"],
      ownBytes: 7_000,
    },
    {
      entry: "sluice/client",
      use: `${declared} import { createClient } from "sluice/client"; console.log(createClient({}).enqueue(welcome, {}));`,
      packages: ["sluice", "zod"],
      ownBytes: 10_000,
    },
  ])("with $entry and a declared type has no engine in it", async ({ use, packages, ownBytes }) => {
    const { metafile } = await build({
      stdin: { contents: use, resolveDir: project },
      ...{ bundle: true, minify: true, format: "esm", platform: "neutral", write: false, metafile: true },
      mainFields: ["module", "main"],
      preserveSymlinks: true,
    });
    const [output] = Object.values(metafile.outputs);
    const inputs = Object.entries(output?.inputs ?? {}).filter(([path]) => path.includes("node_modules/"));
    const packageOf = (path: string) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? path;
    expect([...new Set(inputs.map(([path]) => packageOf(path)))].sort()).toEqual(packages);
    const own = inputs.filter(([path]) => packageOf(path) === "sluice");
    expect(own.map(([path]) => path).filter((path) => /lib\/(edge|queue|contract)\//.test(path))).toEqual([]);
    expect(own.reduce((sum, [, { bytesInOutput }]) => sum + bytesInOutput, 0)).toBeLessThan(ownBytes);
  });
});

test("its four entry points can be imported, and complete jobs together", async () => {
  const script = `
    import pg from "pg";
    import * as z from "zod";
    import { defineJob, definePulledJob, sluice } from "sluice";
    import { createClient } from "sluice/client";
    import { createPuller } from "sluice/puller";
    import { enqueue } from "sluice/sql";
    const greet = defineJob("greet", {
      payload: z.object({ name: z.string() }),
      timeoutSeconds: 5, // short enough for the drain that an enqueue nudges
      run: ({ name }) => "hello " + name,
    });
    const pulled = definePulledJob("pulled", { payload: z.object({ name: z.string() }) });
    const worker = sluice({ jobs: [greet, pulled] });
    const left = [];
    const context = { waitUntil: (work) => left.push(work) };
    const toWorker = (url, init) => worker.fetch(new Request(url, init), process.env, context);
    const key = process.env.SLUICE_ADMIN_KEY;
    const client = createClient({ url: "https://sluice.example", key, fetch: toWorker });
    const transaction = new pg.Client(process.env.DATABASE_URL);
    await transaction.connect();
    const ids = [await enqueue(transaction, greet, { name: "sql" }), await client.enqueue(greet, { name: "http" })];
    ids.push(await client.enqueue(pulled, { name: "puller" }));
    const handlers = { pulled: ({ name }) => "hello " + name };
    const puller = createPuller({ url: "https://sluice.example", key, fetch: toWorker, handlers, waitSeconds: 1 });
    const pulling = puller.run();
    const jobs = await Promise.all(ids.map((id) => client.wait(id, { intervalMs: 20 })));
    await puller.stop();
    await pulling;
    await Promise.all(left);
    await transaction.end();
    console.log(JSON.stringify(jobs.map((job) => job.output)));`;
  writeFileSync(join(project, "import.js"), script);
  const settings = {
    DATABASE_URL: db.url,
    SLUICE_NEON_ENDPOINT: inject("neonEndpoint"),
    SLUICE_ADMIN_KEY: "sk_of_the_package_test",
  };
  const env = { ...process.env, ...settings };
  const { stdout } = await run("node", ["import.js"], { cwd: project, env });
  expect(JSON.parse(stdout.trim().split("\n").at(-1) ?? "")).toEqual([
    "hello sql",
    "hello http",
    "hello puller",
  ]);
});

describe.each([
  { module: "NodeNext", moduleResolution: "NodeNext" },
  { module: "ESNext", moduleResolution: "Bundler" },
])("the compiler with strict and moduleResolution $moduleResolution", (resolution) => {
  const right = `
    import { defineJob, sluice } from "sluice";
    import { createClient, type Job } from "sluice/client";
    import { createPuller, FatalError } from "sluice/puller";
    import { enqueue } from "sluice/sql";
    import * as z from "zod";
    const welcome = defineJob("welcome", { payload: z.object({ userId: z.string() }), run: () => {} });
    const client = createClient<{ welcome: typeof welcome }>({ url: "https://sluice.example", key: "sk" });
    const tx = { query: async (text: string, values: unknown[]) => ({ rows: [text, values] }) };
    export default sluice({ jobs: [welcome] });
    export const id: string = await client.enqueue(welcome, { userId: "u1" }, { delaySeconds: 5 });
    export const status: Job["status"] = (await client.wait(id)).status;
    export const ids: string[] = [await enqueue(tx, welcome, { userId: "u1" })];
    const at = { url: "https://sluice.example", key: "sk" };
    const refuse = () => { throw new FatalError("no"); };
    createPuller({ ...at, handlers: { charge: async (payload: { cents: number }, job) => payload.cents + job.attempt, refuse } });
    createPuller<{ welcome: typeof welcome }>({ ...at, handlers: { welcome: ({ userId }) => void userId.length } });`;
  const wrong = `${right}
    await client.enqueue(welcome, { userId: 1 }); // line 18
    await client.enqueue("welcome", { user: "u1" }); // line 19
    await enqueue(tx, welcome, {}); // line 20
    sluice({ jobs: [{}] }); // line 21
    createPuller<{ welcome: typeof welcome }>({ ...at, handlers: { welcome: ({ user }) => user } }); // line 22
    createPuller({ ...at, handlers: {}, concurency: 5 }); // line 23`;

  async function errorLinesOf(text: string): Promise<number[]> {
    const lib = ["ES2024", "WebWorker"];
    const compilerOptions = { ...resolution, strict: true, noEmit: true, target: "ES2023", lib, types: [] };
    const options = { ...compilerOptions, skipLibCheck: true };
    writeFileSync(
      join(project, "tsconfig.json"),
      JSON.stringify({ compilerOptions: options, files: ["a.ts"] }),
    );
    writeFileSync(join(project, "a.ts"), text);
    const tsc = join(root, "node_modules/.bin/tsc");
    const { stdout } = await run(tsc, ["-p", project, "--pretty", "false"], { cwd: project }).catch(
      (failed: { stdout: string }) => failed,
    );
    const errors = stdout.split("\n").filter((line) => line.includes("error TS"));
    return errors.map((line) => Number(/^a\.ts\((\d+),/.exec(line)?.[1]));
  }

  test("accepts the right calls", async () => expect(await errorLinesOf(right)).toEqual([]));
  test("refuses every wrong payload", async () =>
    expect(await errorLinesOf(wrong)).toEqual([18, 19, 20, 21, 22, 23]));
});

describe("the package's command line", () => {
  test("prints its usage", async () => {
    const { stdout } = await run(bin, ["migrate", "--help"], { cwd: project });
    expect(stdout).toMatch(/^usage: sluice migrate \[flags\]\n/);
  });

  test("migrates a database with the packed migrations", async () => {
    const env = { ...process.env, DATABASE_URL: databaseUrl };
    const { stdout } = await run(bin, ["migrate"], { cwd: project, env });
    expect(stdout).toMatch(/^applied 0001_tables\.sql\n/);
    expect(stdout).toMatch(/applied functions\/enqueue\.sql\n/);
    const again = await run(bin, ["migrate"], { cwd: project, env });
    expect(again.stdout).toBe("the schema is up to date\n");
  });

  /** As in Node 20, which lacks them. */
  const lacking = "data:text/javascript,delete Map.groupBy; delete Promise.withResolvers;";

  test("reaches a database without the Worker, also in Node 20", async () => {
    const env = { ...process.env, DATABASE_URL: db.url, NODE_OPTIONS: `--import "${lacking}"` };
    const queues = await run(bin, ["queues", "list", "--database", "--json"], { cwd: project, env });
    expect(JSON.parse(queues.stdout)).toHaveProperty("queues");
    const found = await run(bin, ["doctor", "--database"], { cwd: project, env }).catch((error) => error);
    expect(found.stdout).toMatch(/^ok\tschema files\tall are those of this release$/m);
  });

  test("fails with one line when the database does not exist", async () => {
    const env = { ...process.env, DATABASE_URL: `${databaseUrl}_no` };
    const failed = await run(bin, ["migrate"], { cwd: project, env }).catch((error) => error);
    expect(failed).toMatchObject({
      code: 3,
      stderr: `sluice: there is no database "${emptyDatabase}_no" on 127.0.0.1; create it, or correct DATABASE_URL\n`,
    });
  });
});
