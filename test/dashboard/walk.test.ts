// Walks every page and every action: what a viewer sees, what only an admin can do, and that a refusal changes nothing.
import { neonConfig } from "@neondatabase/serverless";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Action, type ActionId, actions } from "../../src/dashboard/actions.tsx";
import { entries } from "../../src/dashboard/nav.tsx";
import { sections } from "../../src/dashboard/page.ts";
import { pages } from "../../src/dashboard/pages.ts";
import { adminCallsOf } from "../worker/admin-calls.ts";
import { useDeployment } from "../worker/deployment.ts";
import { forms, makeOneOfEach, note, type OneOfEach } from "./one-of-each.ts";
import { createVisitor, flashOf, origin, signedIn, type Visitor } from "./visitor.ts";
import { fingerprintOf } from "./whole-database.ts";

const deployment = useDeployment([note]);
const { newestAudit } = adminCallsOf(deployment);
const maxStatements = 3;

let each: OneOfEach;
beforeEach(async () => {
  each = await makeOneOfEach(deployment);
});
afterEach(() => {
  neonConfig.fetchFunction = undefined;
});

/** Pages about one thing, and which one. A new page with a parameter has to be added here. */
const examples: Record<string, () => string> = {
  "/jobs/:id": () => `/jobs/${each.dead}`,
  "/flows/:id": () => `/flows/${each.flow}`,
  "/queues/:queue": () => "/queues/default",
  "/types/:type": () => "/types/note",
  "/dead-letters/runs/:run": () => `/dead-letters/runs/${each.run}`,
};
const urlOf = (path: string) => (path.includes(":") ? (examples[path]?.() ?? path) : path);

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
  "frame-ancestors 'none'; base-uri 'none'";

// One test for each page, because a database with one of each thing takes a while.
test.each(pages.map(({ path, section }) => ({ path, section })))(
  "$path shows a viewer one h1, the whole menu and no action, loads nothing from elsewhere, and needs at most 3 statements",
  async ({ path, section }) => {
    const viewer = await signedIn(deployment, "viewer");
    const response = await viewer.get(urlOf(path)); // the key is known from then on
    const text = await response.text();
    expect(response.status, text).toBe(200);
    const headings = [...text.matchAll(/<h1>([^<]*)<\/h1>/g)].map(([, heading]) => heading);
    expect(headings).toEqual(path.includes(":") ? [expect.any(String)] : [section]);
    const links = [...text.matchAll(/<a href="[^"]*" data-key="."[^>]*>.*?<\/svg>([^<]*)<\/a>/g)];
    expect(links.map(([, name]) => name)).toEqual(sections);
    expect(text).not.toContain('action="/actions/');

    expect(response.headers.get("content-security-policy")).toBe(policy);
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(text).not.toMatch(/<style|<script(?![^>]* src="\/assets\/)|\sstyle=|\son\w+=|javascript:/i);
    expect(text).not.toMatch(/(?:src|href)="(?:https?:)?\/\//);

    const statements = await countStatements(() => viewer.page(urlOf(path)));
    expect(statements).toBeGreaterThan(0);
    expect(statements).toBeLessThanOrEqual(maxStatements);

    const refused = await createVisitor(deployment).get(urlOf(path));
    expect(refused.status).toBe(path === "/" ? 200 : 302);
    if (path === "/") expect(await refused.text()).toContain("<h1>Sign in</h1>");
  },
);

async function countStatements(run: () => Promise<unknown>): Promise<number> {
  let statements = 0;
  neonConfig.fetchFunction = (url: string, init: RequestInit) => {
    statements++;
    return fetch(url, init);
  };
  await run();
  return statements;
}

const ids = Object.keys(actions) as ActionId[];
const run = (id: ActionId, visitor: Visitor, headers?: Record<string, string>) =>
  visitor.post(`/actions/${id}`, { ...forms[id](each), to: "/audit" }, headers);

describe("every action changes nothing", () => {
  const refusals: Record<
    string,
    { by(): Promise<Visitor>; headers?: Record<string, string>; status: number }
  > = {
    "as a viewer: it is a 403": { by: () => signedIn(deployment, "viewer"), status: 403 },
    "without a cookie: it leads to the sign-in page": {
      by: async () => createVisitor(deployment),
      status: 302,
    },
    "as an admin whom another site sent: it is a 403": {
      by: () => signedIn(deployment, "admin"),
      headers: { "sec-fetch-site": "cross-site", origin },
      status: 403,
    },
  };
  test.each(Object.entries(refusals))("%s", async (_, { by, headers, status }) => {
    const visitor = await by();
    const before = await fingerprintOf(deployment);
    for (const id of ids) {
      expect([id, (await run(id, visitor, headers)).status]).toEqual([id, status]);
      expect([id, await fingerprintOf(deployment)]).toEqual([id, before]);
    }
  });
});

test.each(ids)("the action %s as an admin is done, and the audit names the key", async (id) => {
  const admin = await signedIn(deployment, "admin", { isNew: true });
  const before = await fingerprintOf(deployment);
  const response = await run(id, admin);
  if (shows(id)) expect(response.status).toBe(200);
  else {
    expect([response.status, response.headers.get("location")]).toEqual([303, "/audit"]);
    expect(flashOf(admin)).toEqual(["done", expect.any(String)]);
  }
  expect(await fingerprintOf(deployment)).not.toEqual(before);
  if (!isUnaudited.has(id)) expect((await newestAudit())?.actor).toBe(`admin of the test (${admin.keyId})`);
  await deployment.quiet();
});

const shows = (id: ActionId) => (actions[id] as Action).show !== undefined;
/** Producers may do these too, and do them often. */
const isUnaudited = new Set<ActionId>(["cancelJob", "cancelJobs", "resolveJob", "enqueueJob"]);

test("the menu has the links of the contract, in its order", () => {
  expect(Object.keys(entries)).toEqual(sections);
  expect(new Set(Object.values(entries).map(({ key }) => key)).size).toBe(sections.length);
});
