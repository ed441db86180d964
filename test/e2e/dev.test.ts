// `npm run dev` from the outside: what a newcomer does, and that it leaves nothing behind however it ends.
import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DevJson } from "../../src/local/dev-directory.ts";
import { freePort } from "../../src/local/ports.ts";
import { endAllRuns, type Process, startDev, stillRunning, until } from "./dev-run.ts";

const stopWithinMs = 10_000;
const ephemeral = ["--ephemeral", "--tick-seconds", "1"];

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "sluice dev "));
  // Postgres runs as another user if the tests run as root.
  chmodSync(directory, 0o755);
});

afterEach(async () => {
  await endAllRuns();
  rmSync(directory, { recursive: true, force: true });
});

describe("a newcomer", () => {
  it.each(["neon", "pg"])(
    "enqueues a job, sees it completed, and stops all with one SIGTERM: %s",
    async (by) => {
      // As in /root, the Postgres user cannot read this directory. The run must copy what Postgres needs, and remove the copy.
      chmodSync(directory, 0o700);
      const port = await freePort();
      const run = startDev(["--port", String(port), "--transport", by, ...ephemeral], { directory });
      const stack = await run.ready();
      expect(stack.url).toBe(`http://127.0.0.1:${port}`);
      expect("neon_endpoint" in stack).toBe(by === "neon");

      const id = await enqueue(stack, { hello: "world" });
      await until("the job is completed", async () => (await job(stack, id)).status === "completed");
      expect((await job(stack, id)).output).toEqual({ hello: "world" });
      await until("a line tells of it", () =>
        new RegExp(`^echo ${id} completed, \\d+ ms$`, "m").test(run.output()),
      );
      expect(run.output()).toContain(`Dashboard: ${stack.url} (`);
      expect(run.output()).not.toMatch(/^sluice\.canary/m);

      const processes = run.descendants();
      for (const part of ["bin/postgres -D", "workerd serve"])
        expect(processes.some(({ command }) => command.includes(part))).toBe(true);
      const askedAt = Date.now();
      run.kill("SIGTERM");
      expect(await run.exitCode).toBe(0);
      expect(Date.now() - askedAt).toBeLessThan(stopWithinMs);
      await untilGone(processes);
      expect(readdirSync(directory)).toEqual(["admin-key"]);
    },
  );

  it("can paste the printed curl lines, whatever is in the admin key", async () => {
    const key = `sk_it's_"$HOME"_#1_\`date\`_{}`;
    const env = { SLUICE_ADMIN_KEY: key };
    const run = startDev(["--port", String(await freePort()), ...ephemeral], { directory, env });
    expect((await run.ready()).admin_key).toBe(key);

    // The output comes through npm's pipe, so it may arrive after dev.json is written.
    const curlLines = () => run.output().match(/^ *curl .*$/gm) ?? [];
    await until("both curl lines are printed", async () => curlLines().length === 2);
    const [enqueueLine, lookLine] = curlLines();
    const { job_id } = await pasted(enqueueLine);
    const found = await pasted(lookLine?.replace("JOB_ID", job_id));
    expect(found).toMatchObject({ job_id, type: "echo", payload: { hello: "world" } });
    expect(run.output()).toContain((await run.ready()).neon_endpoint);
    expect(run.output()).not.toContain("Service bindings");
  });
});

describe("without any cron", () => {
  it("a delayed job and a retry start on time, also if the stack was restarted meanwhile", async () => {
    const flags = ["--tick-seconds", "0", "--port"];
    const first = startDev([...flags, String(await freePort())], { directory });
    const stack = await first.ready();
    const ids = [
      await enqueueJob(stack, { type: "echo", payload: {}, delay_seconds: 2 }),
      await enqueueJob(stack, { type: "flaky", payload: { fail_times: 1 } }),
    ];
    for (const id of ids) {
      await until("the job is completed", async () => (await job(stack, id)).status === "completed");
      const { started_at, created_at } = await job(stack, id);
      expect(Date.parse(started_at) - Date.parse(created_at)).toBeLessThan(3000);
    }
    const late = await enqueueJob(stack, { type: "echo", payload: {}, delay_seconds: 4 });
    first.pressCtrlC();
    await first.exitCode;
    const second = startDev([...flags, String(await freePort())], { directory });
    const again = await second.ready();
    await until("the delayed job is completed", async () => (await job(again, late)).status === "completed");
  });
});

describe("the local data", () => {
  it("is kept from one run to the next; a second run at the same time gets its own database", async () => {
    const flags = ["--tick-seconds", "0", "--port"];
    const first = startDev([...flags, String(await freePort())], { directory });
    const firstStack = await first.ready();
    const id = await enqueue(firstStack, { n: 1 });

    const second = startDev([...flags, String(await freePort())], { directory });
    const secondStack = await second.ready();
    await until("it says that its database is a fresh one", () => second.output().includes("fresh database"));
    expect((await request(secondStack, `/v1/jobs/${id}`)).status).toBe(404);
    expect((await request(firstStack, `/v1/jobs/${id}`)).status).toBe(200);
    second.pressCtrlC();
    await second.exitCode;
    first.pressCtrlC();
    await first.exitCode;
    expect(readdirSync(directory).sort()).toEqual(["admin-key", "postgres", "postgres-port", "worker-state"]);

    const third = startDev([...flags, String(await freePort())], { directory });
    const thirdStack = await third.ready();
    expect(thirdStack.admin_key).toBe(firstStack.admin_key);
    expect(thirdStack.database_url).toBe(firstStack.database_url);
    expect(secondStack.database_url).not.toBe(firstStack.database_url);
    expect((await job(thirdStack, id)).payload).toEqual({ n: 1 });
  });
});

describe("a start that cannot succeed", () => {
  it("leaves the database of an older checkout unchanged, and says what to do", async () => {
    const flags = ["--tick-seconds", "0", "--port"];
    const first = startDev([...flags, String(await freePort())], { directory });
    const client = new pg.Client({ connectionString: (await first.ready()).database_url });
    await client.connect();
    await client.query("update sluice.migration set checksum = 'older' where name = '0001_tables.sql'");
    await client.end();
    first.pressCtrlC();
    await first.exitCode;

    const second = startDev([...flags, String(await freePort())], { directory });
    expect(await second.exitCode).toBe(1);
    expect(second.output()).toContain("0001_tables.sql has changed since it was applied to this database");
    expect(second.output()).toContain(`rm -rf '${join(directory, "postgres")}'`);
    expect(second.output()).toContain("npm run dev -- --ephemeral");
    expect(existsSync(join(directory, "postgres", "PG_VERSION"))).toBe(true);
  });

  it("names the port that is in use, and ends with code 1", async () => {
    const other = createServer();
    const port = await new Promise<number>((resolve) => {
      other.listen(0, "127.0.0.1", () => resolve((other.address() as { port: number }).port));
    });
    const run = startDev(["--port", String(port), ...ephemeral], { directory });
    expect(await run.exitCode).toBe(1);
    expect(run.output()).toContain(`port ${port} is in use`);
    other.close();
  });

  it("names the unknown or invalid flag, and ends with code 2", async () => {
    const unknown = startDev(["--prot", "1"], { directory });
    expect(await unknown.exitCode).toBe(2);
    expect(unknown.output()).toContain("unknown flag --prot; did you mean --port?");
    const odd = startDev(["--transport", "http"], { directory });
    expect(await odd.exitCode).toBe(2);
    expect(odd.output()).toContain('--transport: "http" is none of neon, pg');
    const bad = startDev(["--tick-seconds", "soon"], { directory });
    expect(await bad.exitCode).toBe(2);
    expect(bad.output()).toContain('--tick-seconds: "soon" is not a number');
    expect(readdirSync(directory)).toEqual([]);
  });

  it("names the invalid setting, and ends with code 1", async () => {
    const env = { SLUICE_SCHEMA: "sluice", SLUICE_ALLOW_PRIVATE_TARGETS: "perhaps" };
    const run = startDev(["--port", String(await freePort()), ...ephemeral], { directory, env });
    expect(await run.exitCode).toBe(1);
    expect(run.output()).toContain('SLUICE_ALLOW_PRIVATE_TARGETS must be "true" or "false"');
    expect(readdirSync(directory)).toEqual(["admin-key"]);
  });
});

describe("the sudden end", () => {
  it("of Postgres ends everything with code 1 and a message", async () => {
    const run = startDev(["--port", String(await freePort()), ...ephemeral], { directory });
    await run.ready();
    const processes = run.descendants();
    process.kill(theOne(processes, "bin/postgres -D").pid, "SIGKILL");
    expect(await run.exitCode).toBe(1);
    expect(run.output()).toContain("Postgres ended by SIGKILL");
    await untilGone(processes);
    expect(existsSync(join(directory, "dev.json"))).toBe(false);
  });

  it("of wrangler ends everything with code 1 and a message", async () => {
    const run = startDev(["--port", String(await freePort()), ...ephemeral], { directory });
    await run.ready();
    const processes = run.descendants();
    process.kill(theOne(processes, "--no-warnings").pid, "SIGKILL");
    expect(await run.exitCode).toBe(1);
    expect(run.output()).toContain("the Worker's process ended by SIGKILL");
    await untilGone(processes);
  });

  it("of `npm run dev` itself leaves no process, and the next start removes the files that it left", async () => {
    const run = startDev(["--port", String(await freePort()), ...ephemeral], { directory });
    const { pid } = await run.ready();
    const processes = run.descendants();
    process.kill(pid, "SIGKILL");
    await untilGone(processes);
    const next = startDev(["--port", String(await freePort()), ...ephemeral], { directory });
    await next.ready();
    next.kill("SIGTERM");
    await next.exitCode;
    expect(readdirSync(directory)).toEqual(["admin-key"]);
  });
});

function request(stack: DevJson, path: string, body?: unknown): Promise<Response> {
  const headers = {
    authorization: `Bearer ${stack.admin_key}`,
    "content-type": "application/json",
  };
  if (body === undefined) return fetch(stack.url + path, { headers });
  return fetch(stack.url + path, { method: "POST", headers, body: JSON.stringify(body) });
}

function enqueue(stack: DevJson, payload: unknown): Promise<string> {
  return enqueueJob(stack, { type: "echo", payload });
}

async function enqueueJob(stack: DevJson, job: object): Promise<string> {
  const response = await request(stack, "/v1/jobs", job);
  expect(response.status).toBe(201);
  return ((await response.json()) as { job_id: string }).job_id;
}

async function job(stack: DevJson, id: string) {
  const response = await request(stack, `/v1/jobs/${id}`);
  return (await response.json()) as {
    status: string;
    payload: unknown;
    output: unknown;
    created_at: string;
    started_at: string;
  };
}

async function pasted(line: string | undefined) {
  const { stdout } = await promisify(execFile)("sh", ["-c", line ?? "false"]);
  return JSON.parse(stdout);
}

function theOne(processes: Process[], part: string): Process {
  // The guard's command line contains that of the process it guards.
  const found = processes.filter(({ command }) => command.includes(part) && !command.startsWith("/bin/sh"));
  expect(found).toHaveLength(1);
  return found[0] as Process;
}

async function untilGone(processes: Process[]): Promise<void> {
  await until("no process is left", () => stillRunning(processes).length === 0);
}
