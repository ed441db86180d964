// Sign-in, its cookie, and who gets in.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { revokedWithinMs } from "../../src/edge/http/guards/key-cache.ts";
import { defineJob } from "../../src/index.ts";
import { adminCallsOf } from "../worker/admin-calls.ts";
import { adminKey, useDeployment } from "../worker/deployment.ts";
import { createVisitor, origin, signedIn } from "./visitor.ts";

const echo = defineJob("echo", { payload: z.object({}), timeoutSeconds: 10, run: () => null });
const deployment = useDeployment([echo]);
const { addKey, send } = adminCallsOf(deployment);
const session = "__Host-sluice";
const hours = 60 * 60 * 1000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe("without a cookie", () => {
  test("GET / is the sign-in page", async () => {
    const text = await createVisitor(deployment).page("/");
    expect(text).toContain("<h1>Sign in</h1>");
    expect(text).toContain('<label for="key">API key</label>');
    expect(text).toMatch(/<button[^>]*>Sign in<\/button>/);
  });

  test("another page leads to the sign-in page, and sign-in leads back", async () => {
    const visitor = createVisitor(deployment);
    const refused = await visitor.get("/jobs?q=status%3Adead");
    expect(refused.status).toBe(302);
    const location = refused.headers.get("location") ?? "";
    expect(location).toBe(`/?to=${encodeURIComponent("/jobs?q=status%3Adead")}`);
    expect(await visitor.page(location)).toContain('name="to" value="/jobs?q=status%3Adead"');
    const response = await visitor.post("/sign-in", { key: adminKey, to: "/jobs?q=status%3Adead" });
    expect(response.headers.get("location")).toBe("/jobs?q=status%3Adead");
  });

  test("a link from another site asks once more, because browsers withhold the cookie there", async () => {
    const visitor = await signedIn(deployment, "viewer");
    const withoutCookie = createVisitor(deployment);
    const response = await withoutCookie.get("/?to=%2Fjobs", { "sec-fetch-site": "cross-site" });
    expect(response.headers.get("refresh")).toBe("0;url=/jobs");
    expect(await visitor.page("/jobs")).toContain("<h1>Jobs</h1>");
  });

  test("a page that refreshes itself is told to leave", async () => {
    const response = await createVisitor(deployment).get("/jobs", { "hx-request": "true" });
    expect([response.status, response.headers.get("hx-redirect")]).toEqual([401, "/"]);
  });
});

describe("the cookie", () => {
  test("is HttpOnly, Secure, SameSite=Strict, of this host alone, and lasts 12 hours", async () => {
    const response = await createVisitor(deployment).post("/sign-in", { key: adminKey });
    const [cookie = ""] = response.headers.getSetCookie();
    expect(cookie).toMatch(/^__Host-sluice=/);
    expect(cookie.split("; ").slice(1).toSorted()).toEqual([
      "HttpOnly",
      "Max-Age=43200",
      "Path=/",
      "SameSite=Strict",
      "Secure",
    ]);
  });

  test.each(["viewer", "admin"] as const)("of a key with the role %s opens the pages", async (role) => {
    const visitor = await signedIn(deployment, role, { isNew: true });
    expect(await visitor.page("/")).toContain("<h1>Overview</h1>");
  });

  test("contains neither the key nor, for an admin key of the settings, its hash", async () => {
    const { key } = await addKey("viewer");
    const visitor = createVisitor(deployment);
    await visitor.post("/sign-in", { key });
    expect(visitor.cookies.get(session)).not.toContain(key.slice(3));
    await visitor.post("/sign-in", { key: adminKey });
    expect(visitor.cookies.get(session)).toMatch(/^admin\./);
  });

  test("dies with its key within 10 s", async () => {
    const visitor = await signedIn(deployment, "viewer");
    await visitor.page("/jobs");
    await send(`DELETE /v1/admin/keys/${visitor.keyId}`);
    vi.setSystemTime(Date.now() + revokedWithinMs);
    expect((await visitor.get("/jobs")).status).toBe(302);
  });

  test("is over after 12 hours, whatever the browser sends", async () => {
    const visitor = await signedIn(deployment, "admin");
    vi.setSystemTime(Date.now() + 12 * hours - 1000);
    await visitor.page("/jobs");
    vi.setSystemTime(Date.now() + 2000);
    expect((await visitor.get("/jobs")).status).toBe(302);
  });

  test.each([
    ["another key", (value: string) => value.replace(/^admin/, "a".repeat(64))],
    ["a later end", (value: string) => value.replace(/\.(\d+)\./, (_, at) => `.${Number(at) + 1}.`)],
    ["another signature", (value: string) => value.replace(/.....$/, "AAAA%3D")],
    ["no signature", (value: string) => value.replace(/[^.]+$/, "")],
    ["nothing", () => ""],
  ])("with %s is refused", async (_, change) => {
    const visitor = await signedIn(deployment, "admin");
    visitor.cookies.set(session, change(visitor.cookies.get(session) ?? ""));
    expect((await visitor.get("/jobs")).status).toBe(302);
  });

  test("survives the rotation of the admin key while the old one is in the settings, and no longer", async () => {
    const visitor = await signedIn(deployment, "admin");
    const rotated = { SLUICE_ADMIN_KEY: "sk_the_next_admin_key", SLUICE_ADMIN_KEY_PREVIOUS: adminKey };
    expect((await visitor.get("/jobs", {}, rotated)).status).toBe(200);
    expect((await visitor.get("/jobs", {}, { SLUICE_ADMIN_KEY: "sk_the_next_admin_key" })).status).toBe(302);
  });

  test("opens no operation of the API", async () => {
    const visitor = await signedIn(deployment, "admin");
    const response = await visitor.get("/v1/jobs", { authorization: "" });
    expect(response.status).toBe(401);
  });

  test("is gone after sign-out", async () => {
    const visitor = await signedIn(deployment, "admin");
    const response = await visitor.post("/sign-out");
    expect([response.status, response.headers.get("location")]).toEqual([303, "/"]);
    expect(visitor.cookies.has(session)).toBe(false);
  });
});

describe("sign-in refuses", () => {
  test.each([
    ["an unknown key", `sk_${"a".repeat(43)}`],
    ["a text that is no key", "password"],
    ["nothing", ""],
  ])("%s, and says so", async (_, key) => {
    const visitor = createVisitor(deployment);
    const response = await visitor.post("/sign-in", { key });
    expect(response.status).toBe(401);
    expect(await response.text()).toContain("No such key");
    expect(visitor.cookies.has(session)).toBe(false);
  });

  test.each(["producer", "worker"] as const)("a key with the role %s, and names the roles", async (role) => {
    const { key } = await addKey(role);
    const visitor = createVisitor(deployment);
    const response = await visitor.post("/sign-in", { key });
    expect(response.status).toBe(403);
    expect(await response.text()).toContain(`This key has the role ${role}`);
    expect(visitor.cookies.has(session)).toBe(false);
  });

  test("more than 10 tries a second from one address", async () => {
    const tryFrom = async (address: string) => {
      const headers = { "sec-fetch-site": "same-origin", "cf-connecting-ip": address };
      return (await createVisitor(deployment).post("/sign-in", { key: "guess" }, headers)).status;
    };
    for (let number = 0; number < 10; number++) expect(await tryFrom("192.0.2.1")).toBe(401);
    expect(await tryFrom("192.0.2.1")).toBe(429);
    expect(await tryFrom("192.0.2.2")).toBe(401);
  });

  test.each([
    "https://evil.example/",
    "//evil.example/",
    "/\\evil.example",
    "javascript:alert(1)",
    "not a path",
  ])("to lead to %s", async (to) => {
    const response = await createVisitor(deployment).post("/sign-in", { key: adminKey, to });
    const target = new URL(response.headers.get("location") ?? "", origin);
    expect(target.origin).toBe(origin);
  });
});

describe("a request that changes something", () => {
  const paths = ["/sign-in", "/sign-out", "/theme", "/actions/pauseQueue"];
  const foreign = {
    "from another site": { "sec-fetch-site": "cross-site", origin },
    "from another host of this site": { "sec-fetch-site": "same-site" },
    "typed by a person": { "sec-fetch-site": "none" },
    "from another origin, by an old browser": { origin: "https://evil.example" },
    "from nowhere": {},
  };
  test.each(Object.entries(foreign))("%s is refused", async (_, headers) => {
    const visitor = await signedIn(deployment, "admin");
    for (const path of paths) {
      const response = await visitor.post(path, { key: adminKey, theme: "dark", queue: "default" }, headers);
      expect([path, response.status]).toEqual([path, 403]);
      expect(response.headers.getSetCookie()).toEqual([]);
    }
    expect(await deployment.query("select from sluice.audit where action like 'pause%'")).toEqual([]);
  });

  test("from this origin is accepted, also by an old browser", async () => {
    const visitor = await signedIn(deployment, "admin");
    expect((await visitor.post("/theme", { theme: "dark" }, { origin })).status).toBe(303);
    expect(await visitor.page("/jobs")).toContain('data-theme="dark"');
  });

  test("is not a GET", async () => {
    const visitor = await signedIn(deployment, "admin");
    for (const path of paths) expect((await visitor.get(path)).status).toBe(405);
  });
});
