// The examples, each installed with the packed package and run as its README says: the newsletter under `sluice dev`, the
// puller and the Next.js app beside it. It needs the network.
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DevJson } from "../../src/local/dev-directory.ts";
import { freePort } from "../../src/local/ports.ts";
import { type Started, start, startDev } from "../dependents/dev-process.ts";
import { openProject, type Project } from "../dependents/project.ts";
import { pack, root } from "../support/packed.ts";

const directory = mkdtempSync(join(tmpdir(), "sluice-examples-"));
const names = ["newsletter", "puller", "next-producer"] as const;
const projects = Object.fromEntries(
  names.map((name) => [name, openProject(join(directory, name))]),
) as Record<(typeof names)[number], Project>;
const patience = { timeout: 60_000, interval: 100 };

beforeAll(async () => {
  chmodSync(directory, 0o755); // Postgres may run as another user
  const isOwn = (path: string) => !/\/(node_modules|\.sluice|\.wrangler|\.next)$/.test(path);
  cpSync(join(root, "examples"), directory, { recursive: true, filter: isOwn });
  const tarball = await pack(directory);
  for (const name of names) await projects[name].install(tarball);
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test.each(names)("%s compiles", async (name) => {
  expect(await projects[name].run("npm", ["run", "--silent", "typecheck"])).toMatchObject({
    code: 0,
    stdout: "",
  });
});

describe("the newsletter", () => {
  let dev: Awaited<ReturnType<typeof startDev>>;
  let stack: DevJson;
  let db: pg.Pool;
  let outsidePort: number;
  const running: Started[] = [];
  let outside: Started;

  beforeAll(async () => {
    const { folder } = projects.newsletter;
    const port = await freePort();
    outsidePort = await freePort();
    const at = `http://127.0.0.1:${outsidePort}`;
    const ownPorts = { MAIL_URL: `${at}/mail`, CONTACTS_URL: `${at}/contacts`, NEWS_URL: `${at}/news` };
    const variables = { ...ownPorts, PUBLIC_URL: `http://127.0.0.1:${port}` };
    const lines = Object.entries(variables).map(([name, value]) => `${name}=${value}\n`);
    const file = join(folder, ".dev.vars");
    writeFileSync(file, readFileSync(file, "utf8") + lines.join(""));
    dev = await startDev(folder, ["--tick-seconds", "2", "--migrate", "npx drizzle-kit migrate"], port);
    stack = dev.stack;
    db = new pg.Pool({ connectionString: stack.database_url });
  });
  afterAll(async () => {
    await db?.end();
    for (const process of running) await process.stop("SIGKILL");
    expect(await dev?.stop()).toBe(0);
  });

  function keep(process: Started): Started {
    running.push(process);
    return process;
  }

  async function post(url: string, body: object): Promise<{ status: number; body: Record<string, string> }> {
    const headers = { "content-type": "application/json", authorization: `Bearer ${stack.admin_key}` };
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: response.status, body: (await response.json()) as Record<string, string> };
  }

  async function get(path: string): Promise<unknown> {
    const headers = { authorization: `Bearer ${stack.admin_key}` };
    return (await fetch(stack.url + path, { headers })).json();
  }

  async function createKey(role: string): Promise<string> {
    const command = ["sluice", "keys", "create", role, "--role", role];
    return (await projects.newsletter.run("npx", command)).stdout.trim();
  }

  /** How many jobs of each type there are, by status. */
  async function jobs(): Promise<Record<string, number>> {
    const { rows } = await db.query(
      `select type || ' ' || status as name, count(*)::int as jobs from sluice.jobs
       where type not like 'sluice.%' group by 1`,
    );
    return Object.fromEntries(rows.map(({ name, jobs }) => [name, jobs]));
  }

  interface Line {
    mail?: { id: string; to: string; subject: string; text: string };
    contact?: string;
    news?: { data: { subject: string } };
  }
  const lines = () =>
    outside
      .output()
      .trim()
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Line);
  const mails = (subject: string) => lines().flatMap(({ mail }) => (mail?.subject === subject ? [mail] : []));
  const addresses = (subject: string) =>
    mails(subject)
      .map(({ to }) => to)
      .toSorted();

  const emails = ["ada@example.com", "bob@example.com", "eve@example.com"];
  const issue = { subject: "The first issue", markdown: "# Hello" };

  test("a reader that is there already enqueues nothing, and a wrong address neither", async () => {
    for (const email of emails)
      expect(await post(`${stack.url}/readers`, { email })).toMatchObject({ status: 201 });
    expect(await post(`${stack.url}/readers`, { email: emails[0] })).toMatchObject({ status: 409 });
    expect(await post(`${stack.url}/readers`, { email: "nobody" })).toMatchObject({ status: 400 });
    expect((await db.query("select from sluice.jobs where type = 'welcome'")).rowCount).toBe(3);
    expect((await db.query("select from readers")).rowCount).toBe(3);
  });

  test("readers are asked once, although the mail service was away, and welcomed when they have confirmed", async () => {
    const hasFailed = async () => (await db.query("select from sluice.jobs where errors <> '[]'")).rowCount;
    await expect.poll(hasFailed, patience).toBeGreaterThan(0);
    outside = keep(start(projects.newsletter.folder, ["node", "outside.ts"], { PORT: String(outsidePort) }));
    await expect.poll(() => addresses("Please confirm your address"), patience).toEqual(emails);
    await expect.poll(jobs, patience).toEqual({ "welcome blocked": 3 });
    for (const { to, text } of mails("Please confirm your address"))
      if (to !== "eve@example.com") expect((await fetch(text)).status).toBe(200);
    await expect
      .poll(jobs, patience)
      .toEqual({ "welcome blocked": 1, "welcome completed": 2, "sync_contact completed": 2 });
    expect(addresses("Welcome")).toEqual(emails.slice(0, 2));
    expect(addresses("Please confirm your address")).toEqual(emails);
    expect(lines().filter(({ contact }) => contact)).toHaveLength(2);
  });

  test("an issue is rendered by the puller, mailed once to each confirmed reader, and announced", async () => {
    const published = await post(`${stack.url}/issues`, issue);
    expect(published.status).toBe(202);
    const flow = () => get(`/v1/flows/${published.body.flowId}`);
    expect(await flow()).toMatchObject({ status: "running", total: 3 });
    const env = { SLUICE_URL: stack.url, SLUICE_KEY: await createKey("worker") };
    const puller = keep(start(projects.puller.folder, ["node", "puller.ts"], env));
    await expect.poll(flow, patience).toMatchObject({ status: "completed", counts: { completed: 3 } });
    await expect.poll(async () => (await jobs())["mail_issue completed"], patience).toBe(2);
    expect(addresses(issue.subject)).toEqual(emails.slice(0, 2));
    expect(mails(issue.subject)[0]?.text).toBe("<h1>Hello</h1>\n");
    expect(lines().flatMap(({ news }) => news?.data.subject ?? [])).toEqual([issue.subject]);
    expect(await puller.stop("SIGTERM")).toBe(0);
    expect(puller.output()).toBe("");
  });

  test("the weekly report is a schedule", async () => {
    expect(await get("/v1/schedules/weekly-report")).toMatchObject({ cron: "0 8 * * mon", source: "code" });
    await post(`${stack.url}/v1/schedules/weekly-report/run`, {});
    await expect.poll(() => mails("Your week").map(({ text }) => text), patience).toEqual(["3 new readers"]);
  });

  test("the dashboard is at the paths that the app leaves", async () => {
    expect(await (await fetch(stack.url)).text()).toContain("<title>");
  });

  test("the Next.js app enqueues in its own transaction, and over HTTP", async () => {
    const { run, folder } = projects["next-producer"];
    expect(await run("npm", ["run", "build"], { NEXT_TELEMETRY_DISABLED: "1" })).toMatchObject({ code: 0 });
    const env = {
      DATABASE_URL: stack.database_url,
      SLUICE_URL: stack.url,
      SLUICE_KEY: await createKey("producer"),
    };
    const port = String(await freePort());
    const next = keep(start(folder, ["node_modules/.bin/next", "start", "--port", port], env));
    await expect.poll(next.output, patience).toContain("Ready");
    const api = `http://127.0.0.1:${port}/api`;

    const email = "kim@example.com";
    expect(await post(`${api}/readers`, { email })).toMatchObject({ status: 201 });
    expect(await post(`${api}/readers`, { email })).toMatchObject({ status: 409 });
    expect(await post(`${api}/readers`, { email: "nobody" })).toMatchObject({ status: 400 });
    await expect.poll(() => addresses("Please confirm your address"), patience).toEqual([...emails, email]);
    expect((await db.query("select from sluice.jobs where type = 'welcome'")).rowCount).toBe(4);

    const { rows } = await db.query(
      `select issues.id as "issueId", readers.id as "readerId" from issues, readers where email = $1`,
      [emails[0]],
    );
    const first = await post(`${api}/mails`, rows[0]);
    expect(first.status).toBe(202);
    expect((await post(`${api}/mails`, rows[0])).body).toEqual(first.body);
    expect(await post(`${api}/mails`, {})).toMatchObject({ status: 400 });
    const look = async () => (await fetch(`${api}/mails?job=${first.body.jobId}`)).json();
    await expect.poll(look, patience).toEqual({ status: "completed", output: "sent" });
    expect(addresses(issue.subject)).toEqual([emails[0], ...emails.slice(0, 2)]);
  });
});
