// What a user sees when things end in the middle: Ctrl-C, a closed pipe, a Worker or a database that is gone, a wrong key.
import { execFile } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { listResponse } from "../../src/contract/jobs.ts";
import { freePort } from "../../src/local/ports.ts";
import { useCliDeployment, type Way } from "./cli-deployment.ts";
import { mainFile, runCli, startCli, until } from "./run-cli.ts";

const cli = useCliDeployment();

describe.each<Way>(["worker", "database"])("over the %s", (way) => {
  test("status --watch shows the state again and again, and ends with 0 at Ctrl-C", async () => {
    const watching = cli.start(["status", "--watch", "--interval", "0.1"], { way });
    await until("two looks were shown", () => watching.stdout().split("Sluice at").length > 2);
    watching.kill("SIGINT");
    expect(await watching.ended).toMatchObject({ code: 0 });
  });

  test("status --watch --json prints a line for each look, and ends with 0 at SIGTERM", async () => {
    const watching = cli.start(["status", "--watch", "--interval", "0.1", "--json"], { way });
    await until("two looks were shown", () => watching.stdout().split("\n").length > 2);
    watching.kill("SIGTERM");
    const { code, stdout } = await watching.ended;
    expect(code).toBe(0);
    expect(JSON.parse(stdout.split("\n")[0] ?? "")).toMatchObject({ stats: { totals: { dead: 0 } } });
  });

  test("tail shows each job that ends once, those of before not at all, and ends with 0 at Ctrl-C", async () => {
    const before = await cli.enqueue("echo", { n: 0 });
    await until("it is completed", () => isCompleted(before));
    const tailing = cli.start(["tail", "--interval", "0.2", "--json"], { way });
    await until("it has looked for the first time", () => tailing.stderr().includes("waiting for jobs"));
    const ids = [await cli.enqueue("echo", { n: 1 }), await cli.enqueue("fatal", { message: "x" })];
    ids.push(await cli.enqueue("sleep", { ms: 700 }));
    await cli.fire("* * * * *"); // no nudge has the time for a type with such a time-out
    await until("all are shown", () => tailing.stdout().trim().split("\n").length >= 3);
    tailing.kill("SIGINT");
    const { code, stdout } = await tailing.ended;
    expect(code).toBe(0);
    const jobs = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(jobs.map(({ job_id }) => job_id).toSorted()).toEqual(ids.toSorted());
    expect(listResponse.safeParse({ jobs, next_cursor: null }).success).toBe(true);
  });

  test("tail says how many jobs it has missed: old ones that ended between two looks", async () => {
    const old = [await cli.enqueue("approval"), await cli.enqueue("approval")];
    await cli.db.pool.query("select sluice.enqueue_many('approval', array_fill('{}'::jsonb, array[100]))");
    await cli.db.pool.query("select sluice.resolve(id) from sluice.ready where id <> all($1)", [old]);
    const tailing = cli.start(["tail", "--interval", "0.2"], { way });
    await until("it has looked for the first time", () => tailing.stderr().includes("waiting for jobs"));
    for (const id of old) await cli.post(`/v1/jobs/${id}/resolve`, { output: 1 });
    const missed = () =>
      [...tailing.stderr().matchAll(/(\d+) more jobs? ha/g)].map(([, count]) => Number(count));
    await until("it says so", () => missed().reduce((sum, count) => sum + count, 0) >= 2);
    const shown = await cli.enqueue("echo");
    await until("it goes on", () => tailing.stdout().includes(shown));
    tailing.kill("SIGINT");
    const { stdout } = await tailing.ended;
    expect(missed().reduce((sum, count) => sum + count, 0)).toBe(2);
    expect(stdout.trim().split("\n")).toHaveLength(1);
  });

  test("a long list can be piped to head", async () => {
    await cli.db.pool.query(
      "select count(*) from sluice.enqueue_many('approval', array(select jsonb_build_object('n', n) from generate_series(1, 3000) as n))",
    );
    const flags = way === "database" ? "--database" : "";
    const command = `'${process.execPath}' '${mainFile()}' jobs list --all ${flags} | head -n 2; echo "\${PIPESTATUS[0]}"`;
    const env = { PATH: process.env.PATH ?? "", ...cli.env(way) };
    const { stdout, stderr } = await promisify(execFile)("bash", ["-c", command], { env });
    expect(stdout.trim().split("\n")).toHaveLength(3);
    expect(stdout.trim().split("\n").at(-1)).toBe("0");
    expect(stderr).not.toContain("EPIPE");
  });
});

async function isCompleted(id: string): Promise<boolean> {
  const { rows } = await cli.db.pool.query("select status from sluice.jobs where id = $1", [id]);
  return rows[0]?.status === "completed";
}

describe("while the Worker is gone", () => {
  test("a command ends with 3 and says what it could not reach", async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const ended = await runCli(["jobs", "list"], { env: { SLUICE_URL: url, SLUICE_KEY: "k" } });
    expect(ended).toMatchObject({ code: 3, stdout: "" });
    expect(ended.stderr).toMatch(new RegExp(`^sluice: ${url} is out of reach: .*ECONNREFUSED`));
  });

  test("status --watch and tail go on, and say so", async () => {
    const watching = cli.start(["status", "--watch", "--interval", "0.1"]);
    const tailing = cli.start(["tail", "--interval", "0.1"]);
    await until("both run", () => watching.stdout() !== "" && tailing.stderr().includes("waiting for jobs"));
    await cli.relay().turnOff();
    await until("both say it", () =>
      [watching, tailing].every((run) => run.stderr().includes("out of reach")),
    );
    await cli.relay().turnOn();
    const shown = watching.stdout().length;
    await until("it shows the state again", () => watching.stdout().length > shown);
    for (const run of [watching, tailing]) run.kill("SIGINT");
    expect(await watching.ended).toMatchObject({ code: 0 });
    expect(await tailing.ended).toMatchObject({ code: 0 });
  });

  test("the same commands work with --database", async () => {
    await cli.relay().turnOff();
    expect(await cli.run(["status"])).toMatchObject({ code: 3 });
    expect(await cli.run(["status"], { way: "database" })).toMatchObject({ code: 0 });
    await cli.relay().turnOn();
  });
});

test("a database that is gone ends with 3, names host and port, and hides the password", async () => {
  const port = await freePort();
  const env = { SLUICE_DATABASE_URL: `postgresql://u:secret@127.0.0.1:${port}/d` };
  const { code, stderr } = await runCli(["queues", "list", "--database"], { env });
  expect(code).toBe(3);
  expect(stderr).toContain(`no server answers at 127.0.0.1:${port} of SLUICE_DATABASE_URL`);
  expect(stderr).not.toContain("secret");
});

test("a database without Sluice's schema ends with 3 and names the command that makes it", async () => {
  const env = { SLUICE_SCHEMA: "not_there" };
  const { code, stderr } = await cli.run(["queues", "list"], { way: "database", env });
  expect(code).toBe(3);
  expect(stderr).toContain("npx sluice migrate");
});

test("a wrong key ends with 1", async () => {
  const { code, stderr } = await cli.run(["status"], { env: { SLUICE_KEY: `sk_${"a".repeat(43)}` } });
  expect(code).toBe(1);
  expect(stderr).toContain("unknown API key");
});

test("a server that is not Sluice ends with 3", async () => {
  const other = createServer((_, response) => response.end("<html>hello</html>"));
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  const { code, stderr } = await runCli(["queues", "list"], { env: { SLUICE_URL: url, SLUICE_KEY: "k" } });
  other.close();
  expect(code).toBe(3);
  expect(stderr).toContain("does not answer as Sluice does");
});

test("a second Ctrl-C ends a command that hangs", async () => {
  const hanging = createServer(() => {}); // never answers
  await new Promise<void>((resolve) => hanging.listen(0, "127.0.0.1", resolve));
  const env = { SLUICE_URL: `http://127.0.0.1:${(hanging.address() as AddressInfo).port}`, SLUICE_KEY: "k" };
  const run = startCli(["status", "--watch"], { env });
  const connected = () =>
    new Promise<number>((resolve) => hanging.getConnections((_, count) => resolve(count)));
  await until("it has asked", async () => (await connected()) > 0);
  let code: number | null | undefined;
  void run.ended.then((ended) => {
    code = ended.code;
  });
  // Signals that come at once count as one, so the second is sent until it has arrived.
  await until("it has ended", () => {
    run.kill("SIGINT");
    return code !== undefined;
  });
  expect(code).not.toBe(0);
  hanging.closeAllConnections();
  hanging.close();
});
