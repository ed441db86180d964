// Public tools accept the OpenAPI document: a linter finds nothing, and a generated client compiles.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import openapiTS, { astToString } from "openapi-typescript";
import { expect, test } from "vitest";
import { openapiDocument } from "../../src/contract/openapi.ts";

const root = join(import.meta.dirname, "../..");
const text = JSON.stringify(openapiDocument());

const config = createConfig({
  extends: ["recommended-strict"],
  rules: {
    "no-required-schema-properties-undefined": "error",
    "info-license": "off", // the document describes a deployment, which may have any license
    "operation-4xx-response": "off", // GET /health has no 4xx
  },
});

test("a linter finds no fault in the document", async () => {
  const problems = await lintFromString({
    source: text,
    absoluteRef: "openapi.json",
    config: await config,
  });
  expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual(
    [],
  );
});

/** Calls as users of the generated client write them. Those that must not compile are marked. */
const calls = `
import createClient from "openapi-fetch";
import type { operations, paths } from "./sluice.ts";

const api = createClient<paths>({ baseUrl: "https://sluice.example" });
export const made = await api.POST("/v1/jobs", { body: { type: "echo", payload: { a: 1, b: ["c", null] } } });
export const id: string | undefined = made.data?.job_id;
export const job = await api.GET("/v1/jobs/{id}", { params: { path: { id: "x" } } });
export const output: unknown = job.data?.output;
export const replayed = await api.POST("/v1/admin/dlq/{id}/replay", { params: { path: { id: "x" } } });
export type Key = operations["enqueueJob"]["parameters"]["header"];
export const key: Key = { "Idempotency-Key": "signup:1" };
export const extended = await api.POST("/v1/jobs/{id}/extend", {
  params: { path: { id: "x" } },
  body: { lease: "l", lease_seconds: 60 },
});
export const until: string | undefined = extended.data?.lease_expires_at;
// @ts-expect-error: the type is missing
await api.POST("/v1/jobs", { body: { payload: {} } });
// @ts-expect-error: it must be a number
await api.POST("/v1/jobs", { body: { type: "echo", priority: "1" } });
`;

test("a generated client and calls to it compile", async () => {
  const directory = mkdtempSync(join(tmpdir(), "sluice-openapi-"));
  try {
    symlinkSync(join(root, "node_modules"), join(directory, "node_modules"));
    writeFileSync(join(directory, "package.json"), '{ "type": "module" }');
    writeFileSync(join(directory, "sluice.ts"), astToString(await openapiTS(text)));
    writeFileSync(join(directory, "calls.ts"), calls);
    const options = ["--noEmit", "--strict", "--skipLibCheck", "--allowImportingTsExtensions"];
    const target = ["--target", "es2022", "--module", "nodenext", "--types", ""];
    const tsc = join(root, "node_modules/.bin/tsc");
    const ran = spawnSync(tsc, [...options, ...target, "calls.ts"], { cwd: directory, encoding: "utf8" });
    expect(ran.stdout).toBe("");
    expect(ran.status).toBe(0);
  } finally {
    rmSync(directory, { recursive: true });
  }
}, 60_000);
