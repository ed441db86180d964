// Short calls of the admin API for the tests of a deployment: they send any key and parse the answer.
import { expect } from "vitest";
import type * as z from "zod";
import { auditPage, newKeyResponse } from "../../src/contract/admin.ts";
import { problem } from "../../src/contract/problem.ts";
import type { Role } from "../../src/core/key.ts";
import { adminKey, type Deployment } from "./deployment.ts";

export interface AdminCalls {
  /** `request`: method and path. */
  send(request: string, options?: { key?: string; body?: object; settings?: object }): Promise<Response>;
  /** Sends the request as the admin and parses the answer with the schema. */
  ask<Schema extends z.ZodType>(request: string, schema: Schema, body?: object): Promise<z.output<Schema>>;
  addKey(role: Role, fields?: object): Promise<z.output<typeof newKeyResponse>>;
  newestAudit(): Promise<z.output<typeof auditPage>["entries"][number] | undefined>;
}

export function adminCallsOf(deployment: Deployment): AdminCalls {
  const calls: AdminCalls = {
    send(request, { key = adminKey, body, settings } = {}) {
      const [method = "", path = ""] = request.split(" ");
      const headers: Record<string, string> = { "content-type": "application/json" };
      if (key) headers.authorization = `Bearer ${key}`;
      return deployment.call(
        path,
        { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) },
        settings,
      );
    },
    async ask(request, schema, body) {
      const response = await calls.send(request, body ? { body } : {});
      const answer = await response.json();
      expect([200, 201], JSON.stringify(answer)).toContain(response.status);
      return schema.parse(answer);
    },
    addKey: (role, fields = {}) =>
      calls.ask("POST /v1/admin/keys", newKeyResponse, { name: `a ${role}`, role, ...fields }),
    async newestAudit() {
      return (await calls.ask("GET /v1/admin/audit?limit=1", auditPage)).entries[0];
    },
  };
  return calls;
}

/** Checks that a refusal is a problem document with its status. Returns the paths of the fields at fault. */
export async function refusal(response: Response): Promise<{ status: number; paths: string[] }> {
  expect(response.headers.get("content-type")).toBe("application/problem+json");
  const document = problem.parse(await response.json());
  expect(document.status).toBe(response.status);
  return { status: document.status, paths: (document.errors ?? []).map(({ path }) => path) };
}
