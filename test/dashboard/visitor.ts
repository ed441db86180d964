// A browser without a screen: it keeps cookies, follows nothing, and sends what browsers send.
import { expect } from "vitest";
import type { Role } from "../../src/core/key.ts";
import { adminCallsOf } from "../worker/admin-calls.ts";
import { adminKey, type Deployment } from "../worker/deployment.ts";

export const origin = "https://sluice.example";

export interface Visitor {
  cookies: Map<string, string>;
  get(path: string, headers?: Record<string, string>, settings?: object): Promise<Response>;
  post(
    path: string,
    fields?: Record<string, string> | [string, string][],
    headers?: Record<string, string>,
  ): Promise<Response>;
  /** Gets a page that must be there. */
  page(path: string): Promise<string>;
}

export function createVisitor(deployment: Deployment): Visitor {
  const cookies = new Map<string, string>();
  // Tries to sign in are counted by address.
  const address = crypto.randomUUID();
  async function send(path: string, init: RequestInit, settings: object = {}): Promise<Response> {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const given = init.headers as Record<string, string>;
    const headers = { "cf-connecting-ip": address, ...given, ...(cookie ? { cookie } : {}) };
    const response = await deployment.call(path, { ...init, headers, redirect: "manual" }, settings);
    for (const set of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      if (/max-age=0(;|$)/i.test(set)) cookies.delete(name);
      else cookies.set(name, value);
    }
    return response;
  }
  const visitor: Visitor = {
    cookies,
    get: (path, headers = {}, settings = {}) =>
      send(path, { headers: { accept: "text/html", ...headers } }, settings),
    post: (path, fields = {}, headers = { "sec-fetch-site": "same-origin" }) =>
      send(path, {
        method: "POST",
        headers: { "content-type": "application/x-www-form-urlencoded", accept: "text/html", ...headers },
        body: new URLSearchParams(fields).toString(),
      }),
    async page(path) {
      const response = await visitor.get(path);
      const text = await response.text();
      expect(response.status, text).toBe(200);
      return text;
    },
  };
  return visitor;
}

/** Signed in with a new key of that role. The admin has the key of the settings unless `isNew`. */
export async function signedIn(
  deployment: Deployment,
  role: Role,
  { isNew = false }: { isNew?: boolean } = {},
): Promise<Visitor & { keyId: string }> {
  const visitor = createVisitor(deployment);
  const made =
    role === "admin" && !isNew
      ? { key: adminKey, id: "" }
      : await adminCallsOf(deployment).addKey(role, { name: `${role} of the test` });
  const response = await visitor.post("/sign-in", { key: made.key });
  expect(response.status, await response.text()).toBe(303);
  return { ...visitor, keyId: made.id };
}

/** The message that the next page shows. */
export function flashOf(visitor: Visitor): [string, string] {
  return JSON.parse(decodeURIComponent(visitor.cookies.get("__Host-sluice-flash") ?? "null"));
}

/** Of a page that shows a refused form again: the fields that it points at, each with what was typed and why it was refused. */
export async function refusedFields(
  response: Response,
): Promise<[name: string, typed: string, why: string][]> {
  const html = await response.text();
  expect(response.status, html).toBeGreaterThanOrEqual(400);
  expect(html).toMatch(/<div class="truth is-alarm" role="alert"><div><p>[^<]+/);
  return [...html.matchAll(/<(?:input|textarea|select) ([^>]*aria-invalid[^>]*)>([^<]*)/g)].map(
    ([, attributes = "", text = ""]) => {
      const attribute = (name: string) => new RegExp(`(?:^| )${name}="([^"]*)"`).exec(attributes)?.[1] ?? "";
      const id = attribute("id");
      const why = new RegExp(`id="${id}-fault">([^<]*)<`).exec(html)?.[1] ?? "";
      return [attribute("name"), attribute("value") || text, why];
    },
  );
}
