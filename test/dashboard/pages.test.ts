// What the pages say: a job exactly as it is stored, lists with their filters, and errors.
import { neonConfig } from "@neondatabase/serverless";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { assets } from "../../src/dashboard/assets/bundled.ts";
import { pageSize } from "../../src/dashboard/parts/pager.tsx";
import { useDeployment } from "../worker/deployment.ts";
import { makeOneOfEach, note } from "./one-of-each.ts";
import { createVisitor, flashOf, signedIn, type Visitor } from "./visitor.ts";

const deployment = useDeployment([note]);
let admin: Visitor;
beforeEach(async () => {
  admin = await signedIn(deployment, "admin");
});
afterEach(() => {
  neonConfig.fetchFunction = undefined;
});

const plainText = (html: string) =>
  html.replaceAll("&quot;", '"').replaceAll("&#39;", "'").replaceAll("&lt;", "<").replaceAll("&gt;", ">");
const rowsOf = (text: string) =>
  [...text.matchAll(/<a class="id h\d" href="\/jobs\/([^"]+)"/g)].map(([, id]) => id);

describe("a job", () => {
  test("has its payload exactly as stored: large numbers are not rounded", async () => {
    await deployment.query(
      `select sluice.enqueue('note', '{"text": "x", "ref": 90071992547409931, "share": 0.10000000000000000001}')`,
    );
    const [{ id } = { id: "" }] = await deployment.query<{ id: string }>("select id from sluice.jobs");
    const text = plainText(await admin.page(`/jobs/${id}`));
    expect(text).toContain('"ref": 90071992547409931');
    expect(text).toContain('"share": 0.10000000000000000001');
    expect(plainText(await admin.page("/jobs"))).toContain("90071992547409931");
  });

  test("cannot put markup into a page, wherever its texts are shown", async () => {
    const evil = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'";
    const id = await deployment.enqueue({
      type: "note",
      payload: { text: evil },
      tags: [evil],
      partition_key: evil,
      idempotency_key: evil,
    });
    for (const path of ["/jobs", `/jobs/${id}`, `/jobs?q=${encodeURIComponent(evil)}`]) {
      const text = await admin.page(path);
      expect(text).not.toContain("<script>alert");
      expect(text).not.toContain("<img");
    }
  });

  test("says which worker ran an attempt", async () => {
    const { dead, processing } = await makeOneOfEach(deployment);
    expect(await admin.page(`/jobs/${processing}`)).toMatch(
      /Attempt 1 runs<\/b><span class="muted">for [^<]+ by w;/,
    );
    await deployment.query(
      "select sluice.settle(ids, array_fill(key, array[cardinality(ids)])) from sluice.lease",
    );
    expect(await admin.page(`/jobs/${processing}`)).toMatch(
      /Attempt 1 completed<\/b><span class="muted">after [^<]+ by w</,
    );
    expect(await admin.page(`/jobs/${dead}`)).toMatch(
      /Attempt 1 failed<\/b><span class="muted">after [^<]+ by w</,
    );
  });

  test("says why it is waiting", async () => {
    const id = await deployment.enqueue({ type: "note", payload: { text: "x" }, delay_seconds: 3600 });
    const text = await admin.page(`/jobs/${id}`);
    expect(text).toContain("Why it is waiting");
    expect(text).toContain("It is not due before");
  });

  test.each(["no-uuid", "01900000-0000-7000-8000-000000000000"])(
    "that is not there (%s) is a 404 page",
    async (id) => {
      const response = await admin.get(`/jobs/${id}`);
      expect(response.status).toBe(404);
      const text = await response.text();
      expect(text).toContain("<h1>Not found</h1>");
      expect(text).toContain('aria-label="Main"');
    },
  );
});

describe("the list of jobs", () => {
  test("has pages by keyset, each job once", async () => {
    await deployment.enqueueMany(
      "note",
      Array.from({ length: pageSize * 2 + 10 }, (_, n) => ({ text: String(n) })),
    );
    const seen: (string | undefined)[] = [];
    let path: string | undefined = "/jobs";
    for (let number = 0; path && number < 5; number++) {
      const text: string = await admin.page(path);
      seen.push(...rowsOf(text));
      path = /<a class="btn push" href="([^"]+)" rel="next"/.exec(text)?.[1]?.replaceAll("&amp;", "&");
    }
    expect(seen).toHaveLength(pageSize * 2 + 10);
    expect(new Set(seen).size).toBe(seen.length);
  });

  test("is filtered by the search line and by parameters, and shows the filter", async () => {
    const wanted = await deployment.enqueue({ type: "note", payload: { text: "a" }, tags: ["red"] });
    await deployment.enqueue({ type: "note", payload: { text: "b" }, queue: "other" });
    for (const path of ["/jobs?q=tag%3Ared", "/jobs?tag=red", "/jobs?q=queue%3Adefault+status%3Apending"])
      expect(rowsOf(await admin.page(path))).toEqual([wanted]);
    expect(await admin.page("/jobs?tag=red")).toContain('value="tag:red"');
  });

  test("is filtered by keys and times", async () => {
    const wanted = await deployment.enqueue({
      type: "note",
      payload: { text: "a" },
      partition_key: 'two "words"',
    });
    const shared = await deployment.enqueue({ type: "note", payload: { text: "c" }, fair_key: "tenant" });
    await deployment.enqueue({ type: "note", payload: { text: "b" }, partition_key: "two" });
    const quoted = encodeURIComponent('key:"two \\"words\\""');
    expect(rowsOf(await admin.page(`/jobs?q=${quoted}`))).toEqual([wanted]);
    for (const query of ["fair:tenant", "since:1h+fair:tenant", "fair:tenant+status:pending"])
      expect([query, rowsOf(await admin.page(`/jobs?q=${query}`))]).toEqual([query, [shared]]);
    expect(plainText(await admin.page(`/jobs?key=${encodeURIComponent('two "words"')}`))).toContain(
      'value="key:"two \\"words\\"""',
    );
    for (const query of ["until:1h", "since:2999-01-01", "until:2020-01-01T00:00:00"])
      expect([query, rowsOf(await admin.page(`/jobs?q=${query}`))]).toEqual([query, []]);
    expect(plainText(await admin.page("/jobs?q=since:yesterday"))).toContain('"yesterday" is no time');
  });

  test("says what it did not understand", async () => {
    const text = plainText(await admin.page("/jobs?q=colour%3Ared+status%3Alate"));
    expect(text).toContain('"colour:red" is not understood');
    expect(text).toContain('"late" is no status');
  });
});

describe("the selected jobs", () => {
  const selected = (ids: readonly string[]): [string, string][] => [
    ["to", "/jobs?status=pending"],
    ...ids.map((id): [string, string] => ["id", id]),
  ];
  const statusOf = async (id: string) =>
    (await deployment.query<{ status: string }>("select status from sluice.jobs where id = $1", [id]))[0]
      ?.status;

  test("are cancelled together; those that cannot be are counted, with the reason", async () => {
    const ids: string[] = [];
    for (const text of ["a", "b", "c"])
      ids.push(await deployment.enqueue({ type: "note", payload: { text } }));
    const [first = "", second = "", third = ""] = ids;
    await admin.post("/actions/cancelJob", { id: third });
    const gone = "01900000-0000-7000-8000-000000000000";
    const response = await admin.post("/actions/cancelJobs", selected([first, first, second, gone]));
    expect([response.status, response.headers.get("location")]).toEqual([303, "/jobs?status=pending"]);
    expect(flashOf(admin)).toEqual([
      "done",
      expect.stringMatching(/^2 jobs are cancelled; 1 refused: there is no job .*\.$/),
    ]);
    for (const id of ids) expect(await statusOf(id)).toBe("cancelled");
  });

  test("are not replayed if they are not dead", async () => {
    const id = await deployment.enqueue({ type: "note", payload: { text: "x" } });
    await admin.post("/actions/replayJobs", selected([id]));
    expect(flashOf(admin)).toEqual([
      "failed",
      expect.stringMatching(
        /^0 jobs are replayed; 1 refused: job .* is pending; only a dead job can be replayed/,
      ),
    ]);
    expect(await statusOf(id)).toBe("pending");
  });

  test("may be none, but not more than a page has", async () => {
    await admin.post("/actions/cancelJobs", selected([]));
    expect(flashOf(admin)).toEqual(["failed", "No job is selected."]);
    const many = Array.from({ length: pageSize + 1 }, () => crypto.randomUUID());
    expect((await admin.post("/actions/cancelJobs", selected(many))).status).toBe(400);
  });

  test("have boxes only where an action is possible, and only for an admin", async () => {
    const id = await deployment.enqueue({ type: "note", payload: { text: "x" } });
    expect(await admin.page("/jobs")).toContain(`type="checkbox" name="id" value="${id}"`);
    await admin.post("/actions/cancelJob", { id });
    expect(await admin.page("/jobs")).not.toContain('type="checkbox"');
    const viewer = await signedIn(deployment, "viewer");
    await deployment.enqueue({ type: "note", payload: { text: "y" } });
    expect(await viewer.page("/jobs")).not.toContain('type="checkbox"');
  });
});

describe("an action", () => {
  test("leaves a message that is shown once", async () => {
    await admin.post("/actions/pauseJobType", { type: "note", to: "/types" });
    expect(flashOf(admin)).toEqual(["done", "The type note is paused."]);
    expect(await admin.page("/types")).toContain("The type note is paused.");
    expect(await admin.page("/types")).not.toContain("The type note is paused.");
  });

  test("that comes too late says why, and changes nothing", async () => {
    const id = await deployment.enqueue({ type: "note", payload: { text: "x" } });
    const response = await admin.post("/actions/replayDeadLetter", { id, to: `/jobs/${id}` });
    expect(response.status).toBe(303);
    expect(flashOf(admin)).toEqual(["failed", expect.stringContaining("only a dead job can be replayed")]);
  });

  test.each([
    ["an unknown one", "/actions/dropEverything", {}, 404],
    ["an inherited name", "/actions/toString", {}, 404],
    ["without its field", "/actions/pauseQueue", {}, 400],
    ["with a field that is no JSON", "/actions/resolveJob", { id: "x", output: "{", from: "/jobs" }, 400],
  ])("is refused: %s", async (_, path, fields, status) => {
    expect((await admin.post(path, fields)).status).toBe(status);
  });

  test.each([
    ["JSON", { payload: '{"text": "x", "ref": 90071992547409931}' }],
    ["a field of a form", { "payload:number:ref": "90071992547409931" }],
    ["a field with many digits", { "payload:number:ref": "0.10000000000000000001" }],
  ])("refuses a number that JavaScript would round, in %s, and changes nothing", async (_, fields) => {
    await admin.post("/actions/enqueueJob", { type: "note", ...fields });
    expect(flashOf(admin)).toEqual(["failed", expect.stringMatching(/the number \S+ does not fit a double/)]);
    expect(await deployment.query("select from sluice.job")).toEqual([]);
  });

  test("shows a new key once, and stores it nowhere", async () => {
    const response = await admin.post("/actions/addKey", { name: "someone", role: "viewer" });
    const text = await response.text();
    expect(text).toMatch(/<code>sk_[\w-]{43}<\/code>/);
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(response.headers.getSetCookie()).toEqual([]);
  });
});

test("an open page does not wake a database that sleeps, but opening one does", async () => {
  const state = { idleSinceMs: Date.now() - 60_000 };
  const asleep = { read: async () => ({ state, isAsleep: true, nowMs: Date.now(), metrics: null }) };
  const settings = { SLUICE_MAX_SLEEP_MINUTES: "60", CLOCK: { getByName: () => asleep } };
  let statements = 0;
  neonConfig.fetchFunction = (url: string, init: RequestInit) => {
    statements++;
    return fetch(url, init);
  };
  expect((await admin.get("/", { "hx-request": "true" }, settings)).status).toBe(204);
  expect(statements).toBe(0);
  expect(await (await admin.get("/", {}, settings)).text()).toContain("Asleep since");
  expect(statements).toBeGreaterThan(0);
});

describe("errors", () => {
  test("a database that is away is a page with 503 that tries again", async () => {
    neonConfig.fetchFunction = () => Promise.reject(new Error("no route"));
    const response = await admin.get("/jobs");
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toBe("5");
    const text = await response.text();
    expect(text).toContain("<h1>Database unreachable</h1>");
    expect(text).toContain('hx-trigger="refresh"');
  });

  test("a page whose statement takes longer than 2 s says so, and does not refresh itself", async () => {
    const { query } = deployment;
    const holding = query("do $$ begin lock table sluice.job; perform pg_sleep(60); end $$").catch(() => {});
    const holders = () =>
      query<{ pid: number }>(
        "select pid from pg_locks where relation = 'sluice.job'::regclass and mode = 'AccessExclusiveLock' and granted",
      );
    await expect.poll(holders).toHaveLength(1);
    const startedMs = Date.now();
    const response = await admin.get("/jobs");
    expect(Date.now() - startedMs).toBeGreaterThan(1_900);
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "30"]);
    const text = await response.text();
    expect(text).toContain("<h1>This took too long</h1>");
    expect(text).toContain("the database stopped it after 2 s");
    expect(text).toContain(">Try again</a>");
    expect(text).not.toContain('hx-trigger="refresh"');
    await query("select pg_cancel_backend(pid) from pg_locks where pid = any($1::int[])", [
      (await holders()).map(({ pid }) => pid),
    ]);
    await holding;
    await admin.page("/jobs");
  });

  test("an unknown path is a page for browsers and a problem document for programs", async () => {
    const page = await admin.get("/nothing/here");
    expect([page.status, page.headers.get("content-type")]).toEqual([404, "text/html; charset=UTF-8"]);
    const problem = await createVisitor(deployment).get("/nothing/here", { accept: "*/*" });
    expect([problem.status, problem.headers.get("content-type")]).toEqual([404, "application/problem+json"]);
  });
});

test("assets are served under hashed names, for ever", async () => {
  for (const { path, contentType, body } of Object.values(assets)) {
    const response = await createVisitor(deployment).get(path);
    expect(response.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(response.headers.get("content-type")).toBe(contentType);
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    expect(await response.text()).toBe(body);
  }
  expect((await createVisitor(deployment).get("/assets/style.000000000000.css")).status).toBe(404);
});
