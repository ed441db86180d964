// Cloudflare Access as the way into the dashboard: a Worker in workerd, a key pair of our own, and a server that publishes it.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { useTestDatabase } from "../support/test-database.ts";
import { startWorkerd, type Workerd } from "../support/workerd.ts";

const db = useTestDatabase();
const algorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
const audience = "the-audience-of-the-application";

interface Signer {
  kid: string;
  pair: CryptoKeyPair;
}
/** What the team's server publishes. */
const published: object[] = [];
let reads = 0;
const team = createServer((request, response) => {
  reads++;
  const isCerts = request.url === "/cdn-cgi/access/certs";
  response.writeHead(isCerts ? 200 : 404, { "content-type": "application/json" });
  response.end(JSON.stringify({ keys: published, public_certs: [] }));
});
let teamUrl: string;
let signer: Signer;
let workerd: Workerd;

beforeAll(async () => {
  await new Promise<void>((resolve) => team.listen(0, "127.0.0.1", resolve));
  teamUrl = `http://127.0.0.1:${(team.address() as AddressInfo).port}`;
  signer = await makeSigner("key-1");
  await publish(signer);
  workerd = await startWorkerd({
    worker: new URL("../../src/worker.ts", import.meta.url).pathname,
    bindings: {
      DATABASE_URL: db.url,
      SLUICE_NEON_ENDPOINT: inject("neonEndpoint"),
      SLUICE_ADMIN_KEY: "sk_the_key_of_the_access_tests",
      SLUICE_ALLOW_PRIVATE_TARGETS: "true",
      SLUICE_ACCESS_TEAM_DOMAIN: teamUrl,
      SLUICE_ACCESS_AUDIENCE: audience,
      SLUICE_ACCESS_ROLES: JSON.stringify({ "Ada@example.com": "admin", "*@example.com": "viewer" }),
    },
  });
});
afterAll(async () => {
  await workerd?.stop();
  await new Promise((resolve) => team.close(resolve));
});

async function makeSigner(kid: string): Promise<Signer> {
  const size = { modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]) };
  return { kid, pair: await crypto.subtle.generateKey({ ...algorithm, ...size }, true, ["sign", "verify"]) };
}

async function publish({ kid, pair }: Signer): Promise<void> {
  published.push({ ...(await crypto.subtle.exportKey("jwk", pair.publicKey)), kid, use: "sig" });
}

const base64Url = (text: string | Uint8Array) => Buffer.from(text).toString("base64url");

async function tokenOf(claims: object = {}, by = signer, header: object = {}): Promise<string> {
  const nowSeconds = Math.floor(Date.now() / 1000);
  const all = {
    iss: teamUrl,
    aud: [audience],
    email: "ada@example.com",
    exp: nowSeconds + 60,
    iat: nowSeconds,
    ...claims,
  };
  const parts = [{ alg: "RS256", kid: by.kid, typ: "JWT", ...header }, all].map((part) =>
    base64Url(JSON.stringify(part)),
  );
  const signature = await crypto.subtle.sign(algorithm, by.pair.privateKey, Buffer.from(parts.join(".")));
  return [...parts, base64Url(new Uint8Array(signature))].join(".");
}

const get = (token: string, path = "jobs") =>
  fetch(workerd.url + path, { headers: { "cf-access-jwt-assertion": token }, redirect: "manual" });
const pause = async (token: string) =>
  fetch(`${workerd.url}actions/pauseQueue`, {
    method: "POST",
    headers: { "cf-access-jwt-assertion": token, "sec-fetch-site": "same-origin" },
    body: new URLSearchParams({ queue: "default" }),
    redirect: "manual",
  });

test("a person with a role sees the pages under their e-mail address, without a sign-in", async () => {
  const response = await get(await tokenOf({ email: "Bob@Example.com" }));
  expect(response.status).toBe(200);
  const text = await response.text();
  expect(text).toContain("<h1>Jobs</h1>");
  expect(text).toContain("bob@example.com");
  expect(text).toContain("(viewer)");
});

test("the role decides what a person may change, and the audit names them", async () => {
  expect((await pause(await tokenOf({ email: "bob@example.com" }))).status).toBe(403);
  expect((await pause(await tokenOf())).status).toBe(303);
  const { rows } = await db.pool.query("select actor, action from sluice.audit order by id desc limit 1");
  expect(rows).toEqual([{ actor: "ada@example.com (Access)", action: "pause" }]);
});

test("a person without a role is told so", async () => {
  const response = await get(await tokenOf({ email: "eve@evil.example" }));
  expect(response.status).toBe(403);
  expect(await response.text()).toContain("Eve@evil.example has no role here");
});

describe("a token is worth nothing", () => {
  const past = Math.floor(Date.now() / 1000) - 3600;
  const cases: Record<string, () => Promise<string>> = {
    "of another team": () => tokenOf({ iss: "https://evil.cloudflareaccess.com" }),
    "for another application": () => tokenOf({ aud: ["another"] }),
    "that is over": () => tokenOf({ exp: past }),
    "that is not valid yet": () => tokenOf({ nbf: past + 7200 }),
    "without an e-mail address": () => tokenOf({ email: undefined }),
    "by a key that the team does not have": async () => tokenOf({}, await makeSigner("key-9")),
    "by another key under the name of a good one": async () => tokenOf({}, await makeSigner("key-1")),
    "without a signature": async () => tokenOf({}, signer, { alg: "none" }),
    "with another algorithm": async () => tokenOf({}, signer, { alg: "HS256" }),
    "whose claims were changed": async () => {
      const [head, , signature] = (await tokenOf({ email: "bob@example.com" })).split(".");
      const [, body] = (await tokenOf()).split(".");
      return [head, body, signature].join(".");
    },
    "that is no token": async () => "x.y.z",
    "that is empty": async () => "",
  };
  test.each(Object.entries(cases))("%s", async (_, make) => {
    const response = await get(await make());
    expect([response.status, response.headers.get("location")]).toEqual([302, "/?to=%2Fjobs"]);
  });
});

test("the team's keys are read once, and again for a new one", async () => {
  await get(await tokenOf());
  const before = reads;
  for (let number = 0; number < 5; number++) expect((await get(await tokenOf())).status).toBe(200);
  expect(reads).toBe(before);
  const next = await makeSigner("key-2");
  await publish(next);
  await expect.poll(async () => (await get(await tokenOf({}, next))).status, { timeout: 10_000 }).toBe(200);
  expect(reads).toBeGreaterThan(before);
});

test("sign-out leads to the sign-out of Access", async () => {
  const headers = { "cf-access-jwt-assertion": await tokenOf(), "sec-fetch-site": "same-origin" };
  const response = await fetch(`${workerd.url}sign-out`, { method: "POST", headers, redirect: "manual" });
  expect(response.headers.get("location")).toBe("/cdn-cgi/access/logout");
});
