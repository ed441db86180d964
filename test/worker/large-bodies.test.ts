// Bodies built to be slow to parse still get the documented answer. test/unit/json-scan.test.ts counts the steps.
import { expect, test } from "vitest";
import * as z from "zod";
import { problem } from "../../src/contract/problem.ts";
import { definePulledJob } from "../../src/index.ts";
import { useDeployment } from "./deployment.ts";

const { call, query } = useDeployment([definePulledJob("any", { payload: z.looseObject({}) })]);
const megabytes = 8 * 1024 * 1024 - 64;
const fill = (piece: string) => piece.repeat(megabytes / piece.length);

test.each([
  ["small numbers", () => `[${fill("0,")}0]`, ""],
  ["small numbers as jobs", () => `{"jobs":[${fill("0,")}0]}`, "jobs"],
  ["small numbers as tags", () => `{"jobs":[{"type":"any","tags":[${fill("0,")}0]}]}`, "jobs.0.tags"],
  ["open brackets", () => fill("["), ""],
  ["quotes", () => fill('"'), ""],
  ["backslashes", () => fill("\\"), ""],
  ["escaped quotes without an end", () => `"${fill('\\"')}`, ""],
  ["names", () => `{${Array.from({ length: 500_000 }, (_, n) => `"k${n}":0`).join()}}`, "jobs"],
  ["one name, again and again", () => `{${fill('"a":0,')}"b":1}`, "a"],
])("8 MB of %s are a 400 that names the field", { timeout: 60_000 }, async (_, make, path) => {
  const response = await call("/v1/jobs/batch", { method: "POST", body: make() });
  expect(response.status).toBe(400);
  const { errors } = problem.parse(await response.json());
  expect(errors?.[0]?.path).toBe(path);
  expect(errors?.length).toBeLessThanOrEqual(100);
});

test("8 MB of small numbers in a payload exceed its limit", { timeout: 60_000 }, async () => {
  const body = `{"jobs":[{"type":"any","payload":{"n":[${fill("0,")}0]}}]}`;
  const response = await call("/v1/jobs/batch", { method: "POST", body });
  expect(response.status).toBe(413);
  expect(await query("select from sluice.job")).toEqual([]);
});

const encode = (text: string) => new TextEncoder().encode(text);
const post = (body: BodyInit, headers: Record<string, string> = {}) => {
  const authorization = "Bearer sk_the_key_of_the_worker_tests";
  return call("/v1/jobs", {
    method: "POST",
    headers: { authorization, "content-type": "application/json", ...headers },
    body,
  });
};

test.each([
  [
    "a stray byte",
    Uint8Array.from([...encode('{"type":"any","payload":{"a":"'), 0xc3, 0x28, ...encode('"}}')]),
  ],
  ["half a character at its end", Uint8Array.from([...encode('{"type":"any"}'), 0xe2, 0x82])],
  [
    "a surrogate",
    Uint8Array.from([...encode('{"type":"any","payload":{"a":"'), 0xed, 0xa0, 0x80, ...encode('"}}')]),
  ],
])("a body that is not UTF-8 is refused rather than repaired: %s", async (_, body) => {
  const response = await post(body);
  expect(response.status).toBe(400);
  expect(problem.parse(await response.json()).detail).toBe("the body is not UTF-8");
  expect(await query("select from sluice.job")).toEqual([]);
});

test.each([
  [{ "content-type": "application/json; charset=utf-16" }, 415],
  [{ "content-type": "application/json;charset=iso-8859-1" }, 415],
  [{ "content-type": "application/json-seq" }, 415],
  [{ "content-encoding": "gzip" }, 415],
  [{ "content-encoding": "gzip, identity" }, 415],
  [{ "content-type": 'application/json; charset="UTF-8"', "content-encoding": "identity" }, 201],
  [{ "content-type": "Application/vnd.app.v1+JSON ; charset=utf8" }, 201],
])("a body with the headers %o gets the status %i", async (headers, status) => {
  expect((await post('{"type":"any"}', headers as Record<string, string>)).status).toBe(status);
});
